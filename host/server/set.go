package server

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// Set is `instances = N`: N single env-servers, with wevalr as their pool. A run goes to the least
// loaded living one; the death of one fails its own runs only, and the others finish what they have.
type Set struct {
	mu      sync.Mutex
	members []*member
	down    chan struct{} // closed at the first unrequested end of a member
	downOne sync.Once
	first   error
}

type member struct {
	*Server
	load int
}

// StartSet starts one Server for each spec, side by side. If one does not become ready, the others
// are stopped and its error is returned.
func StartSet(ctx context.Context, specs []Spec) (*Set, error) {
	set := &Set{members: make([]*member, len(specs)), down: make(chan struct{})}
	g, gctx := errgroup.WithContext(ctx)
	for i, spec := range specs {
		g.Go(func() error {
			s, err := Start(gctx, spec)
			if err == nil {
				set.members[i] = &member{Server: s}
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
	for _, m := range set.members {
		go set.mourn(m)
	}
	return set, nil
}

// mourn latches the first end that was not asked for.
func (s *Set) mourn(m *member) {
	<-m.Exited()
	err := m.Err()
	var exited *ExitedError
	if m.stopping.Load() || (errors.As(err, &exited) && exited.Requested) {
		return
	}
	s.downOne.Do(func() {
		s.first = err
		close(s.down)
	})
}

// Down is closed when a member has ended that nobody stopped: with on_exit = "fail", admission ends.
func (s *Set) Down() <-chan struct{} { return s.down }

// Err is the first such end; nil before Down is closed.
func (s *Set) Err() error {
	select {
	case <-s.down:
		return s.first
	default:
		return nil
	}
}

// Servers lists the members, for display.
func (s *Set) Servers() []*Server {
	out := make([]*Server, len(s.members))
	for i, m := range s.members {
		out[i] = m.Server
	}
	return out
}

// Run sends one rollout to the least loaded living member; see [Server.Run]. With none alive it
// returns the error of the first.
func (s *Set) Run(ctx context.Context, req *wire.RunRequest, p *zmqio.Progress) (Reply, error) {
	m := s.acquire()
	defer s.release(m)
	return m.Server.Run(ctx, req, p)
}

// Bind gives a runner that stays with one member: a plugin's rollout call is bound to its generation.
// The caller must call release when the call is over.
func (s *Set) Bind() (srv *Server, release func()) {
	m := s.acquire()
	return m.Server, func() { s.release(m) }
}

func (s *Set) acquire() *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := s.members[0]
	for _, m := range s.members[1:] {
		if (best.ended() && !m.ended()) || (m.load < best.load && !m.ended()) {
			best = m
		}
	}
	best.load++
	return best
}

func (m *member) ended() bool {
	select {
	case <-m.Exited():
		return true
	default:
		return false
	}
}

func (s *Set) release(m *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.load--
}

// Stop stops every member, side by side.
func (s *Set) Stop(ctx context.Context) error {
	var g errgroup.Group
	for _, m := range s.members {
		g.Go(func() error { return m.Stop(ctx) })
	}
	return g.Wait()
}
