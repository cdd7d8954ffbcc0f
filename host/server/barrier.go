package server

import "sync"

// barrier counts the calls on the wire, closes the door for good, and holds the final error until
// nobody is inside.
type barrier struct {
	mu      sync.Mutex
	inside  int
	lost    int // calls that were sent and ended without a reply
	latched bool
	empty   chan struct{} // closed when latched and nobody is inside
	opened  chan struct{} // closed by open
	err     error         // what everybody gets; written before opened closes
}

func newBarrier() *barrier {
	return &barrier{empty: make(chan struct{}), opened: make(chan struct{})}
}

// enter lets a call in unless the door is closed.
func (b *barrier) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.latched {
		return false
	}
	b.inside++
	return true
}

// leave takes a call out; lost says that it was on the wire and got no reply.
func (b *barrier) leave(lost bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside--
	if lost {
		b.lost++
	}
	if b.latched && b.inside == 0 {
		close(b.empty)
	}
}

// latch closes the door. Only the first call does anything.
func (b *barrier) latch() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.latched {
		return
	}
	b.latched = true
	if b.inside == 0 {
		close(b.empty)
	}
}

// inFlight counts the calls that the end took: those that lost their reply and those still inside.
func (b *barrier) inFlight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost + b.inside
}

// open delivers err to everybody, once.
func (b *barrier) open(err error) {
	b.err = err
	close(b.opened)
}

// wait returns the final error; it is bounded by the watcher's own limits, so it takes no ctx.
func (b *barrier) wait() error {
	<-b.opened
	return b.err
}
