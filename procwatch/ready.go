package procwatch

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// ReadyError says that a child was not ready in time. It is being stopped; Stop waits for that.
type ReadyError struct {
	Timeout time.Duration
	// LastProbe is what the last probe that returned said; nil when none did.
	LastProbe error
	// Tail is the output until then.
	Tail []Line
}

func (e *ReadyError) Error() string {
	s := fmt.Sprintf("child not ready after %v", e.Timeout)
	if e.LastProbe != nil {
		return s + ": " + e.LastProbe.Error()
	}
	return s + ": no probe returned"
}

func (e *ReadyError) Unwrap() error { return e.LastProbe }

// Ready waits until the child is ready. What it says once, it says to every caller: nil tells that
// the child was ready, not that it still lives.
//
// # Errors
//
// [*ExitError] when the child ended first, as soon as its Exit is final; [*ReadyError] when
// ReadyTimeout passed; the cause of ctx, and then nothing happens to the child.
func (p *Proc) Ready(ctx context.Context) error {
	select {
	case <-p.ready:
	case <-p.notReady:
	case <-p.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// More than one may have happened: what was decided first counts.
	select {
	case <-p.ready:
		return nil
	default:
	}
	select {
	case <-p.notReady:
		return p.readyErr
	default:
		return &ExitError{Exit: p.exit}
	}
}

// probe decides whether the child becomes ready, until life ends.
func (p *Proc) probe(life context.Context) {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	var timeout <-chan time.Time
	if p.spec.ReadyTimeout > 0 {
		t := time.NewTimer(time.Until(p.start.Add(p.spec.ReadyTimeout)))
		defer t.Stop()
		timeout = t.C
	}
	results := make(chan error, 1)
	again := time.NewTimer(0)
	defer again.Stop()
	var last error
	for {
		select {
		case <-again.C:
			go func() { results <- p.spec.Prober(ctx) }() // it may not return
		case err := <-results:
			if err == nil {
				close(p.ready)
				p.spec.Logger.InfoContext(ctx, "child ready", slog.Int("pid", p.pid), slog.Duration("dur", time.Since(p.start)))
				return
			}
			last = err
			again.Reset(50 * time.Millisecond)
		case <-timeout:
			p.readyErr = &ReadyError{Timeout: p.spec.ReadyTimeout, LastProbe: last, Tail: p.Tail()}
			if p.end(CauseNotReady, "not ready in time") {
				close(p.notReady)
			}
			return
		case <-life.Done():
			return
		}
	}
}
