package server

import (
	"log/slog"
	"strings"
	"time"

	"github.com/wevalr/wevalr/procwatch"
)

// processID names a process for good: its number and when it started, in ticks since boot.
type processID struct {
	pid   int
	start uint64
}

// worker is a process of the env-server's pool.
type worker struct {
	argv     []string
	deadFor  time.Time // when it was first seen as a zombie
	reported bool
}

// isWorker tells a worker of Python's multiprocessing from its resource tracker and all others.
func isWorker(argv []string) bool {
	line := strings.Join(argv, " ")
	return strings.Contains(line, "multiprocessing.spawn") && strings.Contains(line, "spawn_main")
}

// seesWorkers tells whether there may be any that can be seen.
func (m *monitor) seesWorkers() bool { return m.proc != nil && seesWorkers }

// lookAtWorkers finds workers that have ended, and returns the first whose end is the pool's. A pool's
// broker never waits for them, so they stay zombies, which keep how they ended.
func (m *monitor) lookAtWorkers(now time.Time) (lost *WorkerLostError) {
	if !m.seesWorkers() {
		return nil
	}
	for _, c := range m.proc.Children() {
		id := processID{c.PID, c.Started}
		w := m.workers[id]
		if w == nil {
			if !isWorker(c.Argv) {
				continue // for now: it may be about to exec; or it has ended, and nobody can see who it was
			}
			w = &worker{argv: c.Argv}
			m.workers[id] = w
		}
		switch {
		case !c.Ended || w.reported:
		case w.deadFor.IsZero():
			w.deadFor = now
		case now.Sub(w.deadFor) >= zombieFor:
			w.reported = true
			if e := m.workerExited(c, w); e != nil && lost == nil {
				lost = e
			}
		}
	}
	return lost
}

// workerExited tells of a worker's end, and returns it where on_worker_exit makes it the pool's.
func (m *monitor) workerExited(c procwatch.Descendant, w *worker) *WorkerLostError {
	e := &WorkerLostError{
		Life: m.life(), Ending: Ending{Code: c.Code, Signal: c.Signal}, Worker: c.PID, Argv: w.argv, InFlight: m.barrier.inFlight(),
	}
	m.emit(EventWorkerExited, e)
	log := m.spec.Logger.With(m.who(), slog.Int("pid", c.PID), slog.String("err", firstLine(e.Error())))
	switch {
	case e.Signal == 0 && e.Code == 0 && e.InFlight == 0 && !m.warming.Load():
		log.Info("a worker of the env-server's pool has ended with nothing to do")
	case m.spec.OnWorkerExit == "warn":
		log.Warn("a worker of the env-server's pool has died: the pool goes on sending rollouts to it, and they will never be answered")
	default:
		log.Warn("a worker of the env-server's pool has died: nothing new is sent")
		return e
	}
	return nil
}

// tail is the last output until now.
func (s *Server) tail() []string {
	if s.proc == nil {
		return nil
	}
	return lines(s.proc.Tail())
}

func lines(tail []procwatch.Line) []string {
	out := make([]string, len(tail))
	for i, l := range tail {
		out[i] = string(l.Text)
	}
	return out
}
