package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

// The pauses before a new generation: decorrelated jitter
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
const (
	backoffMin = 500 * time.Millisecond
	backoffMax = 30 * time.Second
)

// restarts is the policy of one instance: how many more generations, and how soon.
type restarts struct {
	limit  int
	window time.Duration
	at     []time.Time // those within the window
	last   time.Duration
}

// next takes one restart out of the budget and says how long to wait before it. A generation that
// lived for a whole window makes the pauses short again.
func (r *restarts) next(now time.Time, lived time.Duration) (pause time.Duration, ok bool) {
	keep := 0
	for keep < len(r.at) && now.Sub(r.at[keep]) >= r.window {
		keep++
	}
	r.at = r.at[keep:]
	if len(r.at) >= r.limit {
		return 0, false
	}
	r.at = append(r.at, now)
	if lived >= r.window || r.last == 0 {
		r.last = backoffMin
		return r.last + rand.N(backoffMin), true
	}
	r.last = min(backoffMax, backoffMin+rand.N(3*r.last-backoffMin))
	return r.last, true
}

// revive starts the next generation of an instance, and again while it does not become ready.
//
// # Errors
//
// *GaveUpError when the budget is used up or the process cannot be started at all; ctx's cause.
func (m *member) revive(ctx context.Context) (*Server, error) {
	spec, last, lived := m.spec, m.Err(), time.Since(m.started)
	generation := spec.Generation
	for {
		pause, ok := m.restarts.next(time.Now(), lived)
		if !ok || errors.As(last, new(*StartError)) {
			return nil, &GaveUpError{Instance: spec.Instance, Restarts: len(m.restarts.at), Window: spec.RestartWindow, Last: last}
		}
		if spec.pause != nil {
			pause = spec.pause(pause)
		}
		generation++
		spec.Logger.WarnContext(ctx, "env-server is started again", slog.Int("instance", spec.Instance), slog.Int("gen", generation), slog.Duration("dur", pause))
		if spec.Events != nil {
			spec.Events(Event{At: time.Now(), Kind: EventBackingOff, Instance: spec.Instance, Generation: generation, Err: last, Delay: pause})
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
		next := m.template
		next.Generation = generation
		srv, err := Start(ctx, next)
		if err == nil {
			return srv, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		last, lived = err, 0
	}
}
