package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/procwatch"
)

// workersWithin is how long after health a pool's first worker is waited for.
const workersWithin = 2 * time.Second

// warm waits until a worker answers, where there is one: a pool's broker answers health with no
// worker alive. An unknown method goes to a worker; whatever comes back will do.
func (s *Server) warm(ctx context.Context) error {
	switch s.spec.Warm {
	case "off":
		return nil
	case "on":
	default:
		if !s.isPool(ctx) {
			return nil
		}
	}
	s.warming.Store(true)
	if e := s.monitor.lookAtWorkers(time.Now()); e != nil { // who was never seen alive is nobody
		return e
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { // one that dies meanwhile answers nothing
		ticks(ctx, zombieFor/4, func(now time.Time) {
			if e := s.monitor.lookAtWorkers(now); e != nil {
				cancel(e)
			}
		})
	})
	_, err := s.client.Call(ctx, "probe", wire.EncodeHealth(), nil)
	cancel(nil)
	looking.Wait()
	if err == nil {
		s.warming.Store(false)
	}
	return err
}

// isPool looks for a worker. Only a leader that may have some is given time to start it.
func (s *Server) isPool(ctx context.Context) bool {
	if s.proc == nil || !seesWorkers || !mayBePool(s.proc.PID()) {
		return false
	}
	end := time.NewTimer(workersWithin)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if slices.ContainsFunc(s.proc.Children(), func(c procwatch.Descendant) bool { return isWorker(c.Argv) }) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-end.C:
			return false
		case <-tick.C:
		}
	}
}
