package procwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// errNotNotified stands in a ReadyError for a probe that failed.
var errNotNotified = errors.New("the notification descriptor was closed without a byte")

// notifySettle is how long a child may live on that has closed its notification descriptor, before
// that means something: one that ends closes it a moment earlier.
const notifySettle = time.Second

// becomeReady decides whether the child becomes ready, until life ends.
func (p *Proc) becomeReady(life context.Context) {
	if p.spec.Prober == nil && p.spec.ReadyLine == nil && p.notify == nil {
		close(p.ready)
		return
	}
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	var timeout, settled <-chan time.Time
	if p.spec.ReadyTimeout > 0 {
		t := time.NewTimer(time.Until(p.start.Add(p.spec.ReadyTimeout)))
		defer t.Stop()
		timeout = t.C
	}
	results := make(chan error, 1)
	again := time.NewTimer(0)
	defer again.Stop()
	if p.spec.Prober == nil {
		again.Stop()
	}
	var notified chan error
	if p.notify != nil {
		notified = make(chan error, 1)
		p.helpers.Go(func() { p.listen(life, notified) })
	}
	var last error
	for {
		select {
		case <-again.C:
			go func() { results <- p.spec.Prober(ctx) }() // it may not return
			continue
		case last = <-results:
			again.Reset(50 * time.Millisecond)
		case last = <-notified:
			if last != nil && p.spec.Prober == nil && p.spec.ReadyLine == nil { // nobody else can say it
				settled = time.After(notifySettle)
			}
			notified = nil
		case <-p.out.matched:
			last = nil
		case <-timeout:
			p.giveUp(p.spec.ReadyTimeout, last)
			return
		case <-settled:
			p.giveUp(time.Since(p.start), last)
			return
		case <-life.Done():
			return
		}
		if last == nil {
			close(p.ready)
			p.spec.Logger.InfoContext(ctx, "child ready", slog.Int("pid", p.pid), slog.Duration("dur", time.Since(p.start)))
			return
		}
	}
}

// giveUp ends a child that did not become ready.
func (p *Proc) giveUp(after time.Duration, last error) {
	p.readyErr = &ReadyError{Timeout: after, LastProbe: last, Tail: p.Tail()}
	if p.end(CauseNotReady, "not ready in time") {
		close(p.notReady)
	}
}

// listen says whether a byte came on the notification descriptor, and takes what else may come, so
// that nobody is killed for writing it.
func (p *Proc) listen(life context.Context, notified chan<- error) {
	defer p.notify.Close()
	stop := context.AfterFunc(life, func() { _ = p.notify.SetReadDeadline(time.Now()) })
	defer stop()
	if n, _ := p.notify.Read(make([]byte, 1)); n == 0 {
		notified <- errNotNotified
		return
	}
	notified <- nil
	_, _ = io.Copy(io.Discard, p.notify)
}
