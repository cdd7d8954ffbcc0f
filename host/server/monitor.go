package server

import (
	"context"
	"time"

	"github.com/wevalr/wevalr/host/wire"
)

// zombieFor is how long a worker stays unreaped before it counts as dead.
const zombieFor = time.Second

// monitor looks, again and again, at what neither the process's exit nor the wire shows: silence and
// dead workers.
type monitor struct {
	*Server
	workers map[processID]*worker
	lost    *WorkerLostError // the pool is not whole: silence is suspect
}

// watchLife starts what looks at the living generation. It ends with life.
func (s *Server) watchLife(life context.Context) {
	if s.spec.HealthEvery > 0 {
		s.helpers.Go(func() { s.hint(life) })
	}
	pace := time.Second
	on := false
	for _, d := range []time.Duration{s.spec.StallAfter, s.spec.FirstReply} {
		if d > 0 {
			on = true
			pace = min(pace, max(d/8, 5*time.Millisecond))
		}
	}
	if s.proc != nil && seesWorkers {
		on = true
		pace = min(pace, zombieFor/4, max(s.spec.SuspectAfter/8, 5*time.Millisecond))
	}
	if !on {
		return
	}
	s.helpers.Go(func() {
		m := &monitor{Server: s, workers: map[processID]*worker{}}
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-life.Done():
				return
			case <-tick.C:
				m.lookAtWorkers(time.Now())
				m.lookForSilence(time.Now())
			}
		}
	})
}

// lookForSilence ends the calls that have heard nothing for too long.
func (m *monitor) lookForSilence(now time.Time) {
	for _, c := range m.barrier.calls() {
		if c.seen.Sent().IsZero() {
			continue
		}
		silent := now.Sub(c.seen.Last())
		if c.seen.Deltas() > 0 {
			m.answered.Store(true)
		}
		switch {
		case m.lost != nil && silent >= m.spec.SuspectAfter:
			c.cancel(m.lost)
		case m.spec.FirstReply > 0 && silent >= m.spec.FirstReply && !m.answered.Load():
			m.condemn(verdict{err: m.stalled(c, silent, true)})
		case m.spec.StallAfter > 0 && silent >= m.spec.StallAfter:
			c.cancel(m.stalled(c, silent, false))
		}
	}
}

func (s *Server) stalled(c *inflight, silent time.Duration, first bool) *StalledError {
	return &StalledError{
		Attempt: s.spec.Attempt, Instance: s.spec.Instance, Generation: s.spec.Generation, PID: s.PID(),
		Silent: silent, Deltas: c.seen.Deltas(), First: first, LogPath: s.spec.LogPath, LogRel: s.spec.LogRel,
		Tail: s.tail(), at: time.Now(), received: s.client.Stats().Received,
	}
}

// heardSince tells whether anything at all came from the server since a call stalled: the answer to
// its cancel, which a living server gives at once, or whatever belongs to others. A server that says
// nothing, not even that, is the one that hangs; else it was that rollout alone.
func (s *Server) heardSince(e *StalledError) bool {
	if s.client.Stats().Received > e.received {
		return true
	}
	for _, c := range s.barrier.calls() {
		if c.seen.Deltas() > 0 && c.seen.Last().After(e.at) {
			return true
		}
	}
	return false
}

// Load is how many rollouts are in flight, and for how long the quietest of them has heard nothing.
func (s *Server) Load() (inFlight int, silent time.Duration) {
	now := time.Now()
	for _, c := range s.barrier.calls() {
		inFlight++
		if last := c.seen.Last(); !last.IsZero() {
			silent = max(silent, now.Sub(last))
		}
	}
	return inFlight, silent
}

// hint asks for health, one request at a time. A missing answer is a warning and nothing else: a busy
// server is not a dead one.
func (s *Server) hint(life context.Context) {
	timer := time.NewTimer(s.spec.HealthEvery)
	defer timer.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-timer.C:
		}
		asked := time.Now()
		answer := make(chan struct{})
		s.helpers.Go(func() {
			_, _ = s.client.Call(life, "health", wire.EncodeHealth(), nil)
			close(answer)
		})
		if !within(s.spec.HealthEvery, answer) && life.Err() == nil {
			n, silent := s.Load()
			err := &UnresponsiveError{For: time.Since(asked), InFlight: n, Silent: silent}
			s.spec.Logger.Warn("env-server does not answer health", "instance", s.spec.Instance, "gen", s.spec.Generation, "err", err)
			s.emit(EventUnresponsive, err)
			<-answer
			if life.Err() == nil {
				s.spec.Logger.Info("env-server answers health again", "instance", s.spec.Instance, "gen", s.spec.Generation, "dur", time.Since(asked))
			}
		}
		timer.Reset(s.spec.HealthEvery)
	}
}
