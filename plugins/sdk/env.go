package sdk

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/codec"
)

// Env is the env-server during one rollout. Its methods may be used from several goroutines of the
// rollout: while one waits the others go on, until all wait; then the guest parks in the host.
// Handles that are still open when the rollout returns are closed by the host.
type Env struct {
	// pump is full while a goroutine waits in the host. Whoever else waits takes its place, unless
	// what it waits for comes first; a mutex would not let it.
	pump chan struct{}
	wake chan struct{} // ready may have something

	mu    sync.Mutex // guards the rest
	open  map[int32]*Handle
	ready []*Handle // finished, not yet given to AwaitAny, not taken
	exit  *ServerExitedError
	reply []byte
}

func newEnv() *Env {
	return &Env{pump: make(chan struct{}, 1), wake: make(chan struct{}, 1), open: map[int32]*Handle{}}
}

// Handle is one call to the env-server.
type Handle struct {
	env  *Env
	id   int32
	own  bool          // made by Run, or taken: not for AwaitAny; under env.mu
	done chan struct{} // closed when the host has given it
}

// Run makes one call and waits for its episode. With an error there is no handle: it is closed.
func (e *Env) Run(req EnvRequest) (*Handle, *Episode, error) {
	h, err := e.start(req, true)
	if err != nil {
		return nil, nil, err
	}
	ep, err := h.Take()
	if err != nil {
		h.Close()
		return nil, nil, err
	}
	return h, ep, nil
}

// Start makes a call and does not wait for it.
//
// # Errors
//
// [*DeniedError], [*LimitError] and, once the server has ended, [*ServerExitedError]; [*CallError]
// for a request that the host refuses.
func (e *Env) Start(req EnvRequest) (*Handle, error) { return e.start(req, false) }

func (e *Env) start(req EnvRequest, own bool) (*Handle, error) {
	w := &codec.Writer{}
	codec.WriteEnvRequest(w, req)
	if w.Err != nil {
		return nil, w.Err
	}
	id := hostEnvStart(w.B)
	e.mu.Lock()
	defer e.mu.Unlock()
	if id < 0 {
		return nil, e.refused(id)
	}
	h := &Handle{env: e, id: id, own: own, done: make(chan struct{})}
	e.open[id] = h
	return h, nil
}

// refused is the error of a negative status; an exit that was seen before lends its facts.
func (e *Env) refused(status int32) error {
	if abi.Status(status) == abi.ServerExited && e.exit != nil {
		return e.exit
	}
	return callError(&abi.EnvError{Status: abi.Status(status)})
}

// AwaitAny waits until a started call has finished and gives each one once. A negative timeout
// waits without limit, 0 only looks.
//
// # Errors
//
// [ErrDeadline] when none finished in time, [ErrNoneOpen] when there is none to wait for.
func (e *Env) AwaitAny(timeout time.Duration) (*Handle, error) {
	ms := int32(-1)
	if timeout >= 0 {
		ms = int32(min((timeout+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
	}
	for {
		if h := e.popReady(); h != nil {
			return h, nil
		}
		select {
		case <-e.wake:
		case e.pump <- struct{}{}:
			h, err := e.popReady(), error(nil)
			if h == nil {
				err = e.await(ms)
			}
			<-e.pump
			if h != nil || err != nil {
				return h, err
			}
		}
	}
}

func (e *Env) popReady() *Handle {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ready) == 0 {
		return nil
	}
	h := e.ready[0]
	e.ready = e.ready[1:]
	e.signal()
	return h
}

// signal wakes one AwaitAny if there is something for it; mu is held.
func (e *Env) signal() {
	if len(e.ready) > 0 {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// await lets the host wait for one finished call; the pump is held.
func (e *Env) await(ms int32) error {
	for range 4 { // let the others start what they can before everything stands still
		runtime.Gosched()
	}
	id := hostEnvAwait(ms)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case abi.Status(id) == abi.NotFound:
		return ErrNoneOpen
	case id < 0:
		return e.refused(id)
	}
	h := e.open[id]
	if h == nil || h.given() {
		return nil
	}
	close(h.done)
	if !h.own {
		e.ready = append(e.ready, h)
		e.signal()
	}
	return nil
}

// given reports whether the host's await has given h.
func (h *Handle) given() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// Done reports whether the call has finished, without waiting.
func (h *Handle) Done() bool { return hostEnvPoll(h.id) == 1 }

// Take waits until the call has finished and gives its episode; it may be repeated.
//
// # Errors
//
// The typed errors of this package; the handle stays open.
func (h *Handle) Take() (*Episode, error) {
	for hostEnvPoll(h.id) == 0 {
		select {
		case <-h.done:
		case h.env.pump <- struct{}{}:
			var err error
			if hostEnvPoll(h.id) == 0 {
				err = h.env.await(-1)
			}
			<-h.env.pump
			if err != nil && !errors.Is(err, ErrNoneOpen) {
				return nil, err
			}
		}
	}
	return h.env.take(h)
}

func (e *Env) take(h *Handle) (*Episode, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h.own = true
	e.forget(h)
	if e.reply == nil {
		e.reply = make([]byte, 32<<10)
	}
	n := hostEnvTake(h.id, e.reply)
	if int(n) > len(e.reply) {
		e.reply = make([]byte, n)
		n = hostEnvTake(h.id, e.reply)
	}
	if n < 0 || int(n) > len(e.reply) {
		return nil, e.refused(min(n, int32(abi.Internal)))
	}
	r := codec.NewReader(e.reply[:n])
	p := codec.ReadEnvReply(r)
	switch {
	case r.End() != nil:
		return nil, callError(&abi.EnvError{Status: abi.Internal, Message: "the reply cannot be read: " + r.Err().Error()})
	case p.Err != nil:
		err := callError(p.Err)
		if x, ok := errors.AsType[*ServerExitedError](err); ok {
			e.exit = x
		}
		return nil, err
	case p.Episode == nil:
		return nil, callError(&abi.EnvError{Status: abi.Internal, Message: "the reply is empty"})
	}
	return p.Episode, nil
}

// Cancel asks that the call end: it then finishes with [ErrCancelled], unless its reply came first.
func (h *Handle) Cancel() { hostEnvCancel(h.id) }

// Close gives the handle back; one that has not finished is cancelled. Its episode can then no longer
// be part of the rollout.
func (h *Handle) Close() {
	hostEnvClose(h.id)
	e := h.env
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, h.id)
	e.forget(h)
}

// forget takes h out of what AwaitAny has still to give; mu is held.
func (e *Env) forget(h *Handle) {
	e.ready = slices.DeleteFunc(e.ready, func(r *Handle) bool { return r == h })
}
