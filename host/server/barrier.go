package server

import (
	"context"
	"sync"

	"github.com/wevalr/wevalr/zmqio"
)

// inflight is one run, from before it is sent until its call has left the wire.
type inflight struct {
	seen   *zmqio.Progress
	cancel context.CancelCauseFunc
	judged bool // the monitor's: it has been cancelled for its silence
}

// barrier knows the calls on the wire, closes the door for good, and holds the final error until
// nobody is inside.
type barrier struct {
	mu      sync.Mutex
	inside  map[*inflight]struct{}
	lost    int           // calls that were sent and ended without a reply
	early   error         // what who comes too late gets at once; nil: they wait for the end
	latched chan struct{} // closed when nobody enters any more
	empty   chan struct{} // closed when latched and nobody is inside
	opened  chan struct{} // closed by open
	err     error         // what everybody gets; written before opened closes
}

func newBarrier() *barrier {
	return &barrier{
		inside:  map[*inflight]struct{}{},
		latched: make(chan struct{}), empty: make(chan struct{}), opened: make(chan struct{}),
	}
}

// enter lets a call in unless the door is closed.
func (b *barrier) enter(c *inflight) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if closed(b.latched) {
		return false
	}
	b.inside[c] = struct{}{}
	return true
}

// leave takes a call out; lost says that it was on the wire and got no reply.
func (b *barrier) leave(c *inflight, lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.inside, c)
	if lost {
		b.lost++
	}
	if closed(b.latched) && len(b.inside) == 0 {
		close(b.empty)
	}
}

// latch closes the door; who comes later waits, or gets early at once where that is set. Only the
// first call does anything.
func (b *barrier) latch(early error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if closed(b.latched) {
		return
	}
	b.early = early
	close(b.latched)
	if len(b.inside) == 0 {
		close(b.empty)
	}
}

// calls lists who is inside.
func (b *barrier) calls() []*inflight {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]*inflight, 0, len(b.inside))
	for c := range b.inside {
		out = append(out, c)
	}
	return out
}

// inFlight counts the calls that the end took: those that lost their reply and those still inside.
func (b *barrier) inFlight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost + len(b.inside)
}

// open delivers err to everybody, once.
func (b *barrier) open(err error) {
	b.err = err
	close(b.opened)
}

// wait returns why the door is closed. It is bounded by the watcher's own limits, so it takes no ctx.
func (b *barrier) wait() error {
	<-b.latched
	b.mu.Lock()
	early := b.early
	b.mu.Unlock()
	if early != nil {
		return early
	}
	<-b.opened
	return b.err
}

// closed tells whether a channel that nobody sends on is closed.
func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
