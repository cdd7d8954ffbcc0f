package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/zmqio"
)

// maxHeld bounds what came back to one rollout call, in bytes as they came, what is lost of runs that never ended
// included. Beyond it nothing more is sent.
const maxHeld = 256 << 20

// env is what one rollout call of a plugin sees of the env-server: it implements plugin.Env. After
// the call it is read without the lock: nothing of it runs any more.
type env struct {
	engine *engine
	srv    *server.Server
	origin origin

	mu       sync.Mutex
	held     int64
	episodes []*wire.Episode // all that came back, by ref; those of failed calls too
	usage    wire.Usage
	lost     []lost
	raw      []byte                      // the first reply that could not be decoded
	failures map[string]*failure.Failure // the newest of each source/kind that the guest was told
	sent     bool
	exit     bool
	fatal    error // has ended the attempt
}

// Run sends one `run` for the plugin, under the same bound as everybody's. The plugin's ctx ends with
// its call; the server's end is reported as *abi.EnvError and ends nothing of the plugin.
func (v *env) Run(ctx context.Context, call int, req abi.EnvRequest) (ref int, view *abi.Episode, err error) {
	o, err := v.begin(call)
	if err != nil {
		return 0, nil, v.refuse(ctx, err, server.Reply{})
	}
	run, err := v.engine.Request.build(req.TaskData, o, req.Sampling)
	if err != nil {
		return 0, nil, v.refuse(ctx, err, server.Reply{})
	}
	if err := v.engine.slots.Acquire(ctx, 1); err != nil {
		return 0, nil, v.refuse(ctx, context.Cause(ctx), server.Reply{})
	}
	var p zmqio.Progress
	v.engine.watchEcho(run.TaskData, &p)
	reply, err := v.srv.Run(ctx, run, &p)
	ref, err = v.keep(reply.Episode, &p, err)
	if err == nil {
		err = v.check(run, reply.Episode)
	}
	v.engine.slots.Release(1) // what ends the attempt has done so before the slot is another's
	if err != nil {
		return 0, nil, v.refuse(ctx, err, reply)
	}
	episode, err := v.seen(ref)
	if err != nil {
		return 0, nil, v.refuse(ctx, err, server.Reply{})
	}
	return ref, View(episode, v.engine.Driver.Manifest().RolloutView()), nil
}

// begin numbers a call.
func (v *env) begin(call int) (origin, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	o := v.origin
	o.call = call
	if v.fatal == nil && v.held > maxHeld {
		return o, heldTooMuch()
	}
	return o, v.fatal
}

func heldTooMuch() error {
	return failure.New(failure.Server, "too_large", "the replies of this rollout are over %d MiB together", maxHeld>>20)
}

// keep holds what came back, as far as there is room for it.
func (v *env) keep(episode *wire.Episode, p *zmqio.Progress, err error) (ref int, _ error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sent = v.sent || !p.Sent().IsZero()
	v.held += p.Bytes() + 1024
	if err != nil {
		return 0, err
	}
	v.usage = sum(v.usage, episode.Usage())
	if v.held > maxHeld {
		return 0, heldTooMuch()
	}
	v.episodes = append(v.episodes, episode)
	return len(v.episodes) - 1, nil
}

// check tells whether the episode is one that counts, of the task that was sent.
func (v *env) check(run *wire.RunRequest, episode *wire.Episode) error {
	if err := v.engine.checkEcho(run.TaskData, episode); err != nil {
		v.mu.Lock()
		v.fatal = err
		v.mu.Unlock()
		v.engine.fail(err)
		return err
	}
	if _, f := episode.Outcome(); f != nil {
		return f
	}
	return nil
}

// seen is an episode as plugins may see it: without secrets.
func (v *env) seen(ref int) (*wire.Episode, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.engine.Mask == nil {
		return v.episodes[ref], nil
	}
	line, err := v.episodes[ref].AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	if masked := v.engine.Mask(line); !bytes.Equal(masked, line) {
		if v.episodes[ref], err = wire.ParseEpisode(masked); err != nil {
			return nil, err
		}
	}
	return v.episodes[ref], nil
}

// refuse notes why a call has no episode, and gives what the guest learns of it.
func (v *env) refuse(ctx context.Context, err error, reply server.Reply) error {
	f := failure.Of(err)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		f = failure.New(failure.Cancelled, "caller", "%v", cause)
	}
	f = v.engine.masked(f)
	e := envError(f)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failures[string(f.Source)+"/"+f.Kind] = f
	v.exit = v.exit || serverEnded(f)
	if len(reply.Partial) > 0 && v.held <= maxHeld {
		v.lost = append(v.lost, lost{reply.Partial, f})
	}
	if v.raw == nil {
		v.raw = reply.Raw
	}
	return e
}

// brought is what the call leaves, whatever its answer.
func (v *env) brought() brought {
	return brought{usage: v.usage, lost: v.lost, raw: v.raw, sent: v.sent}
}

// all is everything that came back: what is kept of a rollout that failed.
func (v *env) all() *wire.Episode { return wire.Merge(v.episodes, -1) }

// merge makes the rollout's episode of those that the plugin named. Its scores travel with it, so
// that they are as durable as the episode.
func (v *env) merge(res plugin.RolloutResult) (*wire.Episode, error) {
	episodes := make([]*wire.Episode, len(res.Refs))
	for i, ref := range res.Refs {
		if ref < 0 || ref >= len(v.episodes) {
			return nil, failure.New(failure.Plugin, "response", "rollout: no episode %d", ref)
		}
		episodes[i] = v.episodes[ref]
	}
	if res.Selected < 0 || res.Selected >= len(episodes) {
		return nil, failure.New(failure.Plugin, "response", "rollout: %d episodes, selected %d", len(episodes), res.Selected)
	}
	out := wire.Merge(episodes, res.Selected)
	return out, stampScores(out, res.Scores)
}

// The place of a driver's scores in the selected trace's info.
const (
	infoKey   = "wevalr"
	scoresKey = "scores"
)

// stampScores puts a driver's scores under info.wevalr of the selected trace.
func stampScores(ep *wire.Episode, list []abi.Score) error {
	t := ep.Selected()
	if t == nil {
		if len(list) == 0 {
			return nil
		}
		return failure.New(failure.Plugin, "response", "rollout: scores for an episode without a trace")
	}
	text, err := json.Marshal(scores(list))
	if err != nil {
		return failure.New(failure.Plugin, "response", "rollout: scores: %v", err)
	}
	var plain any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&plain); err != nil {
		return err
	}
	info := t.Info.Map()
	if info == nil {
		info = map[string]any{}
	}
	ours, ok := info[infoKey].(map[string]any)
	if !ok {
		ours = map[string]any{}
		info[infoKey] = ours
	}
	ours[scoresKey] = plain
	t.Info, err = wire.ValueOf(info)
	return err
}

func sum(a, b wire.Usage) wire.Usage {
	a.InputTokens += b.InputTokens
	a.OutputTokens += b.OutputTokens
	if b.Cost != nil {
		cost := *b.Cost
		if a.Cost != nil {
			cost += *a.Cost
		}
		a.Cost = &cost
	}
	return a
}
