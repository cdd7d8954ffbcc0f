package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// Set is `instances = N`: N single env-servers, with wevalr as their pool. A run goes to the least
// loaded living one; the death of one fails its own runs only, and the others finish what they have.
// With Spec.OnExit "restart" an instance that has died gets a new generation; a run is bound to the
// generation that it was sent to, and shares its end.
type Set struct {
	down  chan struct{} // closed at the first end after which there is no restart
	life  context.CancelCauseFunc
	tends sync.WaitGroup

	mu      sync.Mutex
	members []*member // by instance, each the newest generation
	changed chan struct{}
	stopped bool
	first   func() error // the error of the first end; set before down closes
}

// member is one generation's place in the set.
type member struct {
	*Server
	template Spec // as it was given
	restarts *restarts
	load     int
}

var errSetStopped = errors.New("the env-servers are being stopped")

// StartSet starts one Server for each spec, side by side. If one does not become ready, the others
// are stopped and its error is returned: a first generation is not tried again.
func StartSet(ctx context.Context, specs []Spec) (*Set, error) {
	set := &Set{members: make([]*member, len(specs)), down: make(chan struct{}), changed: make(chan struct{})}
	g, gctx := errgroup.WithContext(ctx)
	for i, spec := range specs {
		g.Go(func() error {
			s, err := Start(gctx, spec)
			if err == nil {
				budget := &restarts{limit: s.spec.MaxRestarts, window: s.spec.RestartWindow}
				set.members[i] = &member{Server: s, template: spec, restarts: budget}
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		for _, m := range set.members {
			if m != nil {
				_ = m.Stop(context.WithoutCancel(ctx))
			}
		}
		return nil, err
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	set.life = end
	for i, m := range slices.Clone(set.members) {
		set.tends.Go(func() { set.tend(life, i, m) })
	}
	return set, nil
}

// tend goes by on_exit, generation after generation, until the set is stopped or gives up.
func (s *Set) tend(life context.Context, i int, m *member) {
	for {
		<-m.Closing()
		if m.stopping.Load() {
			return
		}
		if m.spec.OnExit != "restart" {
			s.giveUp(m.barrier.wait)
			return
		}
		<-m.gone // never two generations at once
		srv, err := m.revive(life)
		if err != nil {
			if life.Err() == nil {
				s.gaveUp(m, err)
			}
			return
		}
		m = &member{Server: srv, template: m.template, restarts: m.restarts}
		if !s.replace(i, m) {
			_ = srv.Stop(life) // life is over: at once
			return
		}
	}
}

// replace puts a new generation in its place, unless the set is being stopped.
func (s *Set) replace(i int, m *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.members[i] = m
	s.wake()
	return true
}

// wake lets those who wait for a living server look again. Needs mu.
func (s *Set) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Set) gaveUp(m *member, err error) {
	if m.spec.Events != nil {
		m.spec.Events(Event{At: time.Now(), Kind: EventGaveUp, Instance: m.spec.Instance, Generation: m.spec.Generation, Err: err})
	}
	s.giveUp(func() error { return err })
}

// giveUp latches the first end that is not followed by a restart.
func (s *Set) giveUp(why func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		s.first = why
		close(s.down)
		s.wake()
	}
}

// Down is closed when a member has ended, or is about to, that nobody stopped and that is not started
// again: admission ends.
func (s *Set) Down() <-chan struct{} { return s.down }

// Err is nil before Down is closed. Then it is how that member ended: *ExitedError, *ConnLostError,
// *WorkerLostError, *StalledError or *GaveUpError. It waits until that is known, for as long as the
// exit barrier may take and, where the process has to be stopped, StopGrace.
func (s *Set) Err() error {
	s.mu.Lock()
	why := s.first
	s.mu.Unlock()
	if why == nil {
		return nil
	}
	return why()
}

// Servers lists the members, each in its newest generation, for display.
func (s *Set) Servers() []*Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Server, len(s.members))
	for i, m := range s.members {
		out[i] = m.Server
	}
	return out
}

// Run sends one rollout to the least loaded living member; see [Server.Run] and [Set.Bind].
func (s *Set) Run(ctx context.Context, req *wire.RunRequest, p *zmqio.Progress) (Reply, error) {
	srv, release, err := s.Bind(ctx)
	if err != nil {
		return Reply{}, err
	}
	defer release()
	return srv.Run(ctx, req, p)
}

// Bind gives a server for one rollout, which stays with it: a plugin's rollout call is bound to
// its generation. While none lives and one will be started again, it waits. After Down, with none
// alive, it gives a dead one, whose runs return how it ended. The caller must call release when the
// rollout is over.
//
// # Errors
//
// ctx's cause.
func (s *Set) Bind(ctx context.Context) (srv *Server, release func(), err error) {
	for {
		s.mu.Lock()
		m := s.best()
		if !closed(m.Closing()) || s.first != nil || s.stopped {
			m.load++
			s.mu.Unlock()
			return m.Server, func() { s.release(m) }, nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// best is the least loaded living member, else the least loaded one. Needs mu.
func (s *Set) best() *member {
	best := s.members[0]
	for _, m := range s.members[1:] {
		dead, bestDead := closed(m.Closing()), closed(best.Closing())
		if bestDead && !dead || dead == bestDead && m.load < best.load {
			best = m
		}
	}
	return best
}

func (s *Set) release(m *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.load--
}

// Stop stops every member, side by side, and starts no other.
func (s *Set) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	members := slices.Clone(s.members)
	s.wake()
	s.mu.Unlock()
	s.life(errSetStopped)
	var g errgroup.Group
	for _, m := range members {
		g.Go(func() error { return m.Stop(ctx) })
	}
	err := g.Wait()
	s.tends.Wait()
	return err
}
