package rollout

import (
	"context"
	"errors"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

// try is what one try of a rollout brought.
type try struct {
	episode *wire.Episode
	partial []wire.Trace
	raw     []byte
	scores  []abi.Score // of a driver
	err     error
}

// rollout runs one rollout to its last try and records each. tries counts those of earlier attempts.
// The caller holds a slot where the host drives.
func (e *engine) rollout(ctx, admit context.Context, ordinal, index, tries int) {
	held := e.Driver == nil
	release := func() {
		if held {
			e.slots.Release(1)
			held = false
		}
	}
	defer release()
	task, err := e.task(ordinal)
	if err != nil {
		e.fail(err)
		return
	}
	for n := 0; ; n++ {
		no := tries + n + 1
		start := time.Now()
		if err := e.Journal.Dispatch(task.Key, index, no, start); err != nil {
			e.fail(err)
			return
		}
		e.Observer.Dispatched(task.Key, index)
		t := e.drive(ctx, task, index, no)
		release()
		outcome, f := e.judge(ctx, t)
		again := f != nil && f.Retryable && n < e.Retries && admit.Err() == nil
		if !e.record(ctx, recorded{ordinal: ordinal, index: index, no: no, task: task, start: start, try: t, outcome: outcome, failure: f, again: again}) {
			return
		}
		if !again {
			return
		}
		e.Observer.Retried()
		if e.Driver == nil {
			if e.slots.Acquire(admit, 1) != nil {
				return
			}
			held = true
		}
	}
}

// drive makes one try: the host's one `run`, or the plugin's own rollout.
func (e *engine) drive(ctx context.Context, task *abi.Task, index, no int) try {
	srv, release := e.Servers.Bind()
	defer release()
	if e.Driver != nil {
		return e.drivePlugin(ctx, srv, task, index, no)
	}
	req, err := e.Request.build(task.Data, origin{key: task.Key, index: index, try: no}, nil)
	if err != nil {
		return try{err: err}
	}
	reply, err := srv.Run(ctx, req, nil)
	return try{episode: reply.Episode, partial: reply.Partial, raw: reply.Raw, err: err}
}

// drivePlugin gives the rollout to the plugin. Its env is bound to one generation.
func (e *engine) drivePlugin(ctx context.Context, srv *server.Server, task *abi.Task, index, no int) try {
	env := &env{engine: e, srv: srv, origin: origin{key: task.Key, index: index, try: no}}
	res, err := e.Driver.Rollout(ctx, abi.RolloutRequest{
		Task: *task, Index: int64(index), Seed: Seed(e.Request.TaskSeed, task.Key, index),
	}, env)
	if err != nil {
		if dead := srv.Err(); dead != nil && env.sawExit() {
			// The plugin passed on what it was told: the server is at fault, not the plugin.
			return try{partial: env.partials(), err: dead}
		}
		return try{partial: env.partials(), err: err}
	}
	episode, err := env.merge(res.Refs, res.Selected)
	return try{episode: episode, scores: res.Scores, err: err}
}

// judge names the outcome of a try: the one place for the table "Outcomes and failure kinds".
func (e *engine) judge(ctx context.Context, t try) (failure.Outcome, *failure.Failure) {
	if t.err == nil {
		return t.episode.Outcome()
	}
	f := failure.Of(t.err)
	if f.Source != failure.Cancelled {
		return failure.Errored, f
	}
	switch {
	case errors.Is(context.Cause(ctx), ErrFailFast):
		f = failure.New(failure.Cancelled, "fail_fast", "cancelled by fail_fast")
	case ctx.Err() != nil:
		f = failure.New(failure.Cancelled, "drain", "cancelled: %v", context.Cause(ctx))
	}
	return failure.Dropped, f
}

// recorded is one try and what is to be written of it.
type recorded struct {
	try
	ordinal, index, no int
	task               *abi.Task
	start              time.Time
	outcome            failure.Outcome
	failure            *failure.Failure
	again              bool
}

// record makes a try durable, then hands a finished one to the scorers. It reports false when the
// attempt is over.
func (e *engine) record(ctx context.Context, r recorded) bool {
	rec := journal.Finish{
		Key: r.task.Key, Index: r.index, Try: r.no, Outcome: r.outcome, Failure: r.failure,
		Start: r.start, End: time.Now(),
	}
	var line []byte
	if r.episode != nil {
		u := r.episode.Usage()
		rec.Usage = journal.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: u.Cost}
		rec.Rewards = rewards(r.episode)
		var err error
		if line, err = r.episode.AppendJSON(nil); err != nil {
			rec.Outcome, rec.Failure = failure.Errored, failure.New(failure.Server, "protocol", "episode: %v", err)
			line = nil
		} else if e.Mask != nil {
			line = e.Mask(line)
		}
	}
	e.keepLoose(r)
	// What was done is recorded even while everything is being cancelled.
	ref, err := e.Journal.Finish(context.WithoutCancel(ctx), rec, line)
	if err != nil {
		e.fail(err)
		return false
	}
	if !r.again {
		e.Observer.Ended(r.task.Key, r.index, rec.Outcome, rec.Failure)
	}
	if rec.Outcome.Finished() {
		e.scoring.put(item{task: r.ordinal, index: r.index, ref: ref, data: r.task, episode: r.episode, driver: r.scores})
	} else if e.FailFast && !r.again && rec.Outcome == failure.Errored {
		e.stopAdmission(ErrFailFast)
		e.cancel(ErrFailFast)
		return false
	}
	return true
}
