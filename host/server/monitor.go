package server

import (
	"context"
	"log/slog"
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
	pace := time.Duration(0)
	every := func(d time.Duration) {
		if d = min(max(d/8, 5*time.Millisecond), time.Second); pace == 0 || d < pace {
			pace = d
		}
	}
	if s.spec.StallAfter > 0 {
		every(s.spec.StallAfter)
	}
	if s.spec.FirstReply > 0 {
		every(s.spec.FirstReply)
	}
	if s.monitor.seesWorkers() {
		every(2 * zombieFor)
		every(s.spec.SuspectAfter)
	}
	if pace == 0 {
		return
	}
	s.helpers.Go(func() {
		ticks(life, pace, func(now time.Time) {
			if e := s.monitor.lookAtWorkers(now); e != nil && s.monitor.lost == nil {
				s.monitor.lost = e
				s.condemn(verdict{err: e, soft: true})
			}
			s.monitor.lookForSilence(now)
		})
	})
}

// ticks calls f at a pace until life ends.
func ticks(life context.Context, pace time.Duration, f func(now time.Time)) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
			f(time.Now())
		}
	}
}

// lookForSilence ends the calls that have heard nothing for too long. A silent call of a pool that has
// lost a worker is cancelled; when no other is left the generation ends, with no wait for the answers
// to the cancels, since a dead worker gives none.
func (m *monitor) lookForSilence(now time.Time) {
	hopeless := m.lost != nil && closed(m.barrier.latched)
	for _, c := range m.barrier.calls() {
		if c.judged {
			continue
		}
		if c.seen.Sent().IsZero() {
			hopeless = false
			continue
		}
		silent := now.Sub(c.seen.Last())
		if c.seen.Deltas() > 0 {
			m.answered.Store(true)
		}
		switch {
		case m.lost != nil && silent >= m.spec.SuspectAfter:
			c.judged = true
			c.cancel(m.lost)
		case m.spec.FirstReply > 0 && silent >= m.spec.FirstReply && !m.answered.Load():
			m.condemn(verdict{err: m.stalled(c, silent, true)})
		case m.spec.StallAfter > 0 && silent >= m.spec.StallAfter:
			c.judged = true
			c.cancel(m.stalled(c, silent, false))
		default:
			hopeless = false
		}
	}
	if hopeless {
		m.condemn(verdict{err: m.lost})
	}
}

func (s *Server) stalled(c *inflight, silent time.Duration, first bool) *StalledError {
	return &StalledError{
		Life: s.life(), Silent: silent, Deltas: c.seen.Deltas(), First: first,
		at: time.Now(), received: s.client.Stats().Received,
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
			s.spec.Logger.WarnContext(life, "env-server does not answer health", s.who(), slog.Any("err", err))
			s.emit(EventUnresponsive, err)
			<-answer
			if life.Err() == nil {
				s.spec.Logger.InfoContext(life, "env-server answers health again", s.who(), slog.Duration("dur", time.Since(asked)))
			}
		}
		timer.Reset(s.spec.HealthEvery)
	}
}
