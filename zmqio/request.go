package zmqio

import (
	"context"
	"sync"
)

// Handler answers a request with the reply's payload. A run (method "run") gets a goroutine and a
// place among [ServerOptions.MaxRuns]; all other methods are answered one after another by their
// connection's reader, and must be fast. ctx ends by a cancel, with the client, and with the server;
// its cause says which. A handler must return when it ends, and its reply is sent if it still can be.
type Handler func(ctx context.Context, req *Request) []byte

// Request is one request while its handler works. Its fields must not be changed. All methods may be
// called from any goroutine.
type Request struct {
	ID, Method string
	Payload    []byte

	peer   *peer
	done   <-chan struct{} // closed when the handler's context ends
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	replied bool
}

// Delta streams one piece of the answer and owns payload from then on. It waits while the
// connection's queue is full.
//
// # Errors
//
// [ErrReplied] after the handler has returned; [ErrPeerGone] when the connection has ended;
// [ErrCancelled] when the handler's context ended while it waited.
func (r *Request) Delta(payload []byte) error {
	m := message{id: r.ID, delta: true, payload: payload}
	if err := r.peer.out.reserve(m.cost(), r.peer.gone, r.done); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replied {
		r.peer.out.release(m.cost())
		return ErrReplied
	}
	r.peer.out.put(m)
	return nil
}

// CancelRun is for a handler of the method "cancel": it ends the context of the run with that id, on
// whatever connection it came. reply encodes the cancel's own reply, which goes out before any reply
// of the cancelled run; it is told whether the run was there and unanswered. The handler returns
// what CancelRun returns.
func (r *Request) CancelRun(id string, reply func(cancelled bool) []byte) []byte {
	run := r.peer.server.run(id)
	if run != nil { // held until both are done, so that the run cannot be answered in between
		run.mu.Lock()
		defer run.mu.Unlock()
	}
	found := run != nil && !run.replied
	payload := reply(found)
	r.mu.Lock()
	r.reply(payload, true)
	r.mu.Unlock()
	if found {
		run.cancel(ErrCancelled)
	}
	return payload
}

// finish sends the reply, unless [Request.CancelRun] has. It waits for room.
func (r *Request) finish(payload []byte) {
	m := message{payload: payload}
	if r.answered() || r.peer.out.reserve(m.cost(), r.peer.gone, nil) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reply(payload, false)
}

// answered reports whether the reply is on its way.
func (r *Request) answered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replied
}

// reply needs mu.
func (r *Request) reply(payload []byte, force bool) {
	m := message{id: r.ID, payload: payload}
	if force {
		r.peer.out.force(m.cost())
	}
	r.replied = true
	r.peer.out.put(m)
}
