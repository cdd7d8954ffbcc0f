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

// interrupts turn the operator's signals into the two ends of a run: the first drains, the second
// cancels, SIGTERM and SIGHUP do both at once, the third leaves at once.
type interrupts struct {
	drain  chan struct{}
	code   atomic.Int32 // 0, or the exit code of the first signal
	cancel context.CancelCauseFunc
	resume string // the command that goes on
}

// watch reads signals until ctx ends. say prints one line for the operator; leave must not return.
func (h *Host) watch(ctx context.Context, cancel context.CancelCauseFunc, resume string, say func(string), leave func(code int)) *interrupts {
	in := &interrupts{drain: make(chan struct{}), cancel: cancel, resume: resume}
	go func() {
		for n := 0; ; {
			select {
			case sig := <-h.signals:
				n = in.take(sig, n, say, leave)
			case <-ctx.Done():
				return
			}
		}
	}()
	return in
}

// take handles one signal after n steps were made, and tells how many are now.
func (in *interrupts) take(sig os.Signal, n int, say func(string), leave func(int)) int {
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
		say("interrupted: nothing new is dispatched, what is in flight finishes; interrupt again to cancel it; go on later with: " + in.resume)
	case 2:
		say("interrupted: what is in flight is cancelled; interrupt again to leave at once")
		in.cancel(errInterrupted)
	default:
		say(fmt.Sprintf("interrupted %d times: leaving at once", step))
		leave(int(in.code.Load()))
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
