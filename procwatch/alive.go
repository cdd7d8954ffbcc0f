package procwatch

import (
	"context"
	"log/slog"
	"time"
)

// Liveness asks a child that is ready whether it still answers. It is not progress: a busy child may
// be slow, so choose limits that only a dead one passes.
type Liveness struct {
	// Probe returns nil when the child is alive; nil asks nothing. It is called from one goroutine
	// at a time, and its ctx ends with the round.
	Probe func(ctx context.Context) error
	// Every is the pause between two rounds; 0 is 10 s.
	Every time.Duration
	// Timeout is how long an answer may take; 0 is 5 s.
	Timeout time.Duration
	// Misses is how many rounds in a row must fail for the child to be stopped with
	// CauseUnresponsive; 0 is 3. A round during which the machine or this process was suspended
	// counts for nothing.
	Misses int
}

func (l Liveness) withDefaults() Liveness {
	l.Every = orDefault(l.Every, 10*time.Second)
	l.Timeout = orDefault(l.Timeout, 5*time.Second)
	l.Misses = orDefault(l.Misses, 3)
	return l
}

// suspendSlack is how late the end of a round may be noticed on a machine that is only busy.
const suspendSlack = time.Second

// suspended tells of a round which took so long by either clock that its deadline cannot have been
// kept: the monotonic one stands still while a machine sleeps, and goes on while we are stopped.
func (l Liveness) suspended(mono, wall time.Duration) bool {
	return max(mono, wall) > l.Timeout+suspendSlack
}

// stopwatch returns what two clocks say to have passed since it was made.
type stopwatch func() (mono, wall time.Duration)

func newStopwatch() stopwatch {
	start := time.Now()
	return func() (mono, wall time.Duration) {
		now := time.Now()
		return now.Sub(start), now.Round(0).Sub(start.Round(0))
	}
}

// watch asks until ctx ends or too many rounds in a row have failed; then it returns what the last
// probe that returned said, and true. A probe that does not return is not called again: every round
// that passes without it fails.
func (l Liveness) watch(ctx context.Context, start func() stopwatch) (last error, dead bool) {
	results := make(chan error, 1)
	asked := false
	timer := time.NewTimer(l.Every)
	defer timer.Stop()
	for misses := 0; misses < l.Misses; timer.Reset(l.Every) {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, false
		}
		round, end := context.WithTimeout(ctx, l.Timeout)
		taken := start()
		if !asked {
			asked = true
			go func() { results <- l.Probe(round) }() // it may not return
		}
		missed := true
		select {
		case err := <-results:
			asked = false
			if last = err; err == nil {
				misses, missed = 0, false
			}
		case <-round.Done():
		}
		end()
		if missed && !l.suspended(taken()) {
			misses++
		}
	}
	return last, true
}

// stayAlive ends a child that is ready and no longer alive.
func (p *Proc) stayAlive(life context.Context) {
	select {
	case <-p.ready:
	case <-life.Done():
		return
	}
	if last, dead := p.spec.Liveness.watch(life, newStopwatch); dead && life.Err() == nil {
		p.spec.Logger.WarnContext(life, "child is unresponsive", slog.Int("pid", p.pid), slog.Any("err", last))
		p.end(CauseUnresponsive, "unresponsive")
	}
}
