package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// interruptedError ends a verb that was interrupted before it had a result.
type interruptedError struct{ code int }

func (e *interruptedError) Error() string { return "interrupted" }

var errInterrupted = errors.New("interrupted: what is in flight is cancelled")

// operator is how a run talks with who interrupts it.
type operator struct {
	say      func(string) // prints one line
	draining func()       // shows what is left, counted down
	leave    func(code int)
	resume   string // the command that goes on
}

// interrupts turn the operator's signals into the two ends of a run: the first drains, the second
// cancels, SIGTERM and SIGHUP do both at once, the third leaves at once.
type interrupts struct {
	operator
	drain  chan struct{}
	code   atomic.Int32 // 0, or the exit code of the first signal
	cancel context.CancelCauseFunc
}

// watch reads signals until ctx ends.
func (h *Host) watch(ctx context.Context, cancel context.CancelCauseFunc, op operator) *interrupts {
	in := &interrupts{operator: op, drain: make(chan struct{}), cancel: cancel}
	go func() {
		for n := 0; ; {
			select {
			case sig := <-h.signals:
				n = in.take(sig, n)
			case <-ctx.Done():
				return
			}
		}
	}()
	return in
}

// take handles one signal after n steps were made, and tells how many are now. It acts before it
// speaks: a terminal may be slow.
func (in *interrupts) take(sig os.Signal, n int) int {
	code := ExitTerminated
	if sig == os.Interrupt {
		code = ExitInterrupt
	}
	in.code.CompareAndSwap(0, int32(code))
	step := n + 1
	if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
		step = max(step, 2)
	}
	if n == 0 {
		close(in.drain)
	}
	switch step {
	case 1:
		in.say("interrupted: nothing new is dispatched, what is in flight finishes; interrupt again to cancel it; go on later with: " + in.resume)
		in.draining()
	case 2:
		in.cancel(errInterrupted)
		in.say("interrupted: what is in flight is cancelled; interrupt again to leave at once; go on later with: " + in.resume)
	default:
		in.say(fmt.Sprintf("interrupted %d times: leaving at once", step))
		in.leave(int(in.code.Load()))
	}
	return step
}

// preparing watches for signals until begun is called: before there is anything to drain, the first one
// ends the verb.
func (h *Host) preparing(ctx context.Context) (_ context.Context, begun func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case sig := <-h.signals:
			code := ExitTerminated
			if sig == os.Interrupt {
				code = ExitInterrupt
			}
			cancel(&interruptedError{code})
		case <-stop:
		}
	}()
	return ctx, sync.OnceFunc(func() { close(stop); <-done })
}
