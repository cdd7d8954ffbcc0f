package procwatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"
)

// ErrUnkillable says that the leader still lived KillWait after SIGKILL, as one in an
// uninterruptible sleep does. Done closes if it ends later.
var ErrUnkillable = errors.New("unkillable")

// Stop ends the child: TERM and CONT to the tree, KILL after Spec.Grace or when ctx ends, whichever
// is earlier; of several callers the most impatient counts. It returns at Done, also when ctx has
// ended, and every caller gets the same Exit. The first reason is kept in it. After the end Stop
// only returns the Exit.
//
// # Errors
//
// [ErrUnkillable], with the leader's state, and nothing else.
func (p *Proc) Stop(ctx context.Context, reason string) (Exit, error) {
	p.end(CauseStopped, reason)
	over := ctx.Done()
	for {
		select {
		case <-p.done:
			return p.exit, nil
		case <-p.stuck:
			return Exit{}, p.stuckErr
		case <-over:
			p.hurryOnce.Do(func() { close(p.hurry) })
			over = nil
		}
	}
}

// end begins to end the child, unless that has begun or the child is dead already: a crash that
// nobody has noticed yet is the child's own. It reports whether it was the first.
func (p *Proc) end(c Cause, reason string) bool {
	if p.body.dead() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause != "" {
		return false
	}
	p.cause, p.reason = c, reason
	p.helpers.Go(p.terminate) // under the lock: run waits for helpers only after setting a cause
	return true
}

// terminate sends the signals. The body drops those that come after reaping.
func (p *Proc) terminate() {
	p.spec.Logger.Info("child is being stopped", slog.Int("pid", p.pid))
	p.body.signal(syscall.SIGTERM)
	p.body.signal(syscall.SIGCONT) // TERM stays pending in a stopped process
	if p.gone(p.spec.Grace, p.hurry) || p.body.dead() {
		return
	}
	p.mu.Lock()
	p.escalated = true
	p.mu.Unlock()
	p.body.signal(syscall.SIGKILL)
	if p.gone(p.spec.KillWait, nil) {
		return
	}
	p.stuckErr = fmt.Errorf("stop: pid %d in state %s: %w", p.pid, stateOf(p.pid), ErrUnkillable)
	p.spec.Logger.Error("child is unkillable", slog.Int("pid", p.pid), slog.Any("err", p.stuckErr))
	close(p.stuck)
}

// gone waits for the leader's death, at most limit and until early closes.
func (p *Proc) gone(limit time.Duration, early <-chan struct{}) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-p.exiting:
		return true
	case <-early:
	case <-t.C:
	}
	return false
}
