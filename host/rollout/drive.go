package rollout

import (
	"context"
	"errors"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/zmqio"
)

// job is one try of a rollout.
type job struct {
	task           *abi.Task
	size           int // of the task's line
	ordinal, index int
	try            int // from 1, those of earlier attempts included
	retries        int // what is left of them, and of replays
	replays        int
	start          time.Time
}

func (j *job) origin() origin { return origin{key: j.task.Key, index: j.index, try: j.try} }

// brought is what a try brought.
type brought struct {
	episode *wire.Episode // of a failed plugin-driven try: everything that came back
	usage   wire.Usage
	lost    []lost
	raw     []byte // a reply that could not be decoded, see server.Reply
	sent    bool   // something of it was written to the wire
	err     error
}

// lost is what had arrived of a run that never ended, and why; nil: as the try ended.
type lost struct {
	traces []wire.Trace
	why    *failure.Failure
}

// ending is how a try, or its rollout, ended; the zero value: it never began.
type ending struct {
	outcome failure.Outcome
	failure *failure.Failure
}

// rollout runs one rollout to its last try. tries counts those of earlier attempts. The caller has
// taken a slot with enter; each try gives its own back.
func (e *engine) rollout(ctx, admit context.Context, ordinal, index, tries int) {
	task, size, err := e.task(ordinal)
	if err != nil {
		e.leave()
		e.fail(err)
		return
	}
	j := &job{task: task, size: size, ordinal: ordinal, index: index, try: tries, retries: e.Retries, replays: e.Replays}
	var end ending
	for {
		j.try++
		next, recorded := e.try(ctx, admit, j)
		if recorded || end.outcome == "" {
			end = next
		}
		if !recorded || !j.again(end) {
			break
		}
		if !e.enter(admit) {
			e.cut.Store(true)
			break
		}
		e.Observer.Retried()
	}
	if end.outcome != "" {
		e.Observer.Ended(task.Key, index, end.outcome, end.failure)
	}
	if end.outcome == failure.Dropped {
		e.cut.Store(true)
	}
}

// again takes one more try out of what is left, where such an end allows it.
func (j *job) again(end ending) bool {
	left := &j.retries
	switch f := end.failure; {
	case f == nil || end.outcome != failure.Errored:
		return false
	case serverEnded(f):
		left = &j.replays
	case !f.Retryable:
		return false
	}
	*left--
	return *left >= 0
}

// final reports whether such an end is the rollout's.
func (j *job) final(end ending) bool {
	still := *j
	return !still.again(end)
}

// serverEnded reports whether a failure is the end of a generation, which rollouts share.
func serverEnded(f *failure.Failure) bool {
	if f.Source != failure.Server {
		return false
	}
	switch f.Kind {
	case "exited", "connection_lost", "worker_lost", "stalled":
		return true
	}
	return false
}

// try makes one try and records it. recorded is false where there is nothing to record: no server
// lives, or the disk takes no more.
func (e *engine) try(ctx, admit context.Context, j *job) (end ending, recorded bool) {
	srv, unbind, ok := e.bind(admit)
	if !ok {
		e.leave()
		e.cut.Store(true)
		return ending{}, false
	}
	defer unbind()
	j.start = time.Now()
	if err := e.Journal.Dispatch(j.task.Key, j.index, j.try, j.start); err != nil {
		e.leave()
		e.fail(err)
		return ending{}, false
	}
	e.Observer.Dispatched(j.task.Key, j.index)
	var b brought
	if e.Driver != nil {
		b = e.drivePlugin(ctx, srv, j)
	} else {
		b = e.drive(ctx, srv, j)
	}
	end = judge(ctx, b)
	// What ends admission does so before the slot is another's.
	if end.outcome == failure.Errored && j.final(end) {
		e.failFast()
	}
	if wrong, ok := errors.AsType[*EchoError](b.err); ok {
		e.fail(wrong)
	}
	e.leave()
	if !b.sent && e.Replays == 0 && b.err != nil && errors.Is(b.err, srv.Err()) {
		// The server was ending when the try began: nothing of it was sent, so it was never run.
		e.cut.Store(true)
		return ending{outcome: failure.Dropped}, false
	}
	return e.record(ctx, j, b, end)
}

// drive makes the host's one `run`.
func (e *engine) drive(ctx context.Context, srv *server.Server, j *job) brought {
	req, err := e.Request.build(j.task.Data, j.origin(), nil)
	if err != nil {
		return brought{err: err}
	}
	var p zmqio.Progress
	e.watchEcho(req.TaskData, &p)
	reply, err := srv.Run(ctx, req, &p)
	b := brought{episode: reply.Episode, raw: reply.Raw, sent: !p.Sent().IsZero(), err: err}
	if err != nil {
		if len(reply.Partial) > 0 {
			b.lost = []lost{{traces: reply.Partial}}
		}
		return b
	}
	b.usage = reply.Episode.Usage()
	b.err = e.checkEcho(req.TaskData, reply.Episode)
	return b
}

// drivePlugin gives the rollout to the plugin. Its env is bound to one generation.
func (e *engine) drivePlugin(ctx context.Context, srv *server.Server, j *job) brought {
	v := &env{engine: e, srv: srv, origin: j.origin(), failures: map[string]*failure.Failure{}}
	res, err := e.Driver.Rollout(ctx, abi.RolloutRequest{
		Task: *j.task, Index: int64(j.index), Seed: Seed(e.Request.TaskSeed, j.task.Key, j.index),
	}, v)
	b := v.brought()
	if err == nil && v.fatal == nil {
		b.episode, err = v.merge(res)
	}
	if err != nil || v.fatal != nil {
		b.episode, b.err = v.all(), v.blame(ctx, err)
	}
	return b
}

// blame names who is at fault for a failed call: a plugin that only passes on what it was told of
// the env-server or of the run's end is not.
func (v *env) blame(ctx context.Context, err error) error {
	if v.fatal != nil {
		return v.fatal
	}
	guest, ok := errors.AsType[*plugin.GuestError](err)
	if !ok {
		return err
	}
	dead := v.srv.Err()
	if dead != nil && v.exit {
		return dead
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	source, _ := guest.Data["source"].(string)
	kind, _ := guest.Data["kind"].(string)
	if f := v.failures[source+"/"+kind]; f != nil && f.Source != failure.Cancelled {
		return f
	}
	return err
}

// judge names the outcome of a try: the one place for the table "Outcomes and failure kinds". A reply
// that arrived wins over ctx's end.
func judge(ctx context.Context, b brought) ending {
	if b.err == nil {
		outcome, f := b.episode.Outcome()
		return ending{outcome, f}
	}
	if cause := context.Cause(ctx); cause != nil && (errors.Is(b.err, cause) || requested(b.err)) {
		if errors.Is(cause, ErrFailFast) {
			return ending{failure.Dropped, failure.New(failure.Cancelled, "fail_fast", "cancelled by fail_fast")}
		}
		return ending{failure.Dropped, failure.New(failure.Cancelled, "drain", "cancelled: %v", cause)}
	}
	f := failure.Of(b.err)
	if f.Source == failure.Cancelled {
		return ending{failure.Dropped, f}
	}
	return ending{failure.Errored, f}
}

// requested reports whether a server's end was our own Stop.
func requested(err error) bool {
	exited, ok := errors.AsType[*server.ExitedError](err)
	return ok && exited.Requested
}
