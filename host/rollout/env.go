package rollout

import (
	"context"
	"errors"
	"sync"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

// env is what one rollout call of a plugin sees of the env-server: it implements plugin.Env.
type env struct {
	engine *engine
	srv    *server.Server
	origin origin

	mu       sync.Mutex
	calls    int
	episodes []*wire.Episode // by ref
	partial  []wire.Trace
	exit     bool
}

// Run sends one `run` for the plugin, under the same bound as everybody's. The plugin's ctx ends with
// its call; the server's end is reported as *abi.EnvError and ends nothing of the plugin.
func (v *env) Run(ctx context.Context, req abi.EnvRequest) (ref int, view *abi.Episode, err error) {
	v.mu.Lock()
	o := v.origin
	o.call = v.calls
	v.calls++
	v.mu.Unlock()
	run, err := v.engine.Request.build(req.TaskData, o, req.Sampling)
	if err != nil {
		return 0, nil, envError(err)
	}
	if err := v.engine.slots.Acquire(ctx, 1); err != nil {
		return 0, nil, envError(context.Cause(ctx))
	}
	reply, err := v.srv.Run(ctx, run, nil)
	v.engine.slots.Release(1)
	if err == nil {
		if _, f := reply.Episode.Outcome(); f != nil {
			err = f
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		e := envError(err)
		v.partial = append(v.partial, reply.Partial...)
		v.exit = v.exit || e.Status == abi.ServerExited || e.Status == abi.ConnectionLost
		return 0, nil, e
	}
	v.episodes = append(v.episodes, reply.Episode)
	return len(v.episodes) - 1, View(reply.Episode, v.engine.Driver.Manifest().RolloutView()), nil
}

func (v *env) sawExit() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.exit
}

func (v *env) partials() []wire.Trace {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.partial
}

// merge makes the rollout's episode of those that the plugin named.
func (v *env) merge(refs []int, selected int) (*wire.Episode, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(refs) == 0 || selected < 0 || selected >= len(refs) {
		return nil, failure.New(failure.Plugin, "response", "rollout: %d episodes, selected %d", len(refs), selected)
	}
	episodes := make([]*wire.Episode, len(refs))
	for i, ref := range refs {
		if ref < 0 || ref >= len(v.episodes) {
			return nil, failure.New(failure.Plugin, "response", "rollout: no episode %d", ref)
		}
		episodes[i] = v.episodes[ref]
	}
	if len(episodes) == 1 {
		return episodes[0], nil
	}
	return wire.Merge(episodes, selected), nil
}

// envError maps a failure to the ABI's status: the one function that does.
func envError(err error) *abi.EnvError {
	if known, ok := errors.AsType[*abi.EnvError](err); ok {
		return known
	}
	f := failure.Of(err)
	e := &abi.EnvError{Status: status(f), Source: string(f.Source), Kind: f.Kind, Message: f.Message}
	if s := f.Server; s != nil {
		e.Server = &abi.ServerFacts{Generation: int64(s.Generation), UptimeS: s.UptimeS, Log: s.Log, Tail: s.Tail}
		if s.Code != nil {
			code := int64(*s.Code)
			e.Server.Code = &code
		}
		if s.Signal != 0 {
			e.Server.Signal = s.SignalName
		}
	}
	return e
}

func status(f *failure.Failure) abi.Status {
	switch string(f.Source) + "/" + f.Kind {
	case "server/exited":
		return abi.ServerExited
	case "server/connection_lost":
		return abi.ConnectionLost
	case "server/worker_lost":
		return abi.WorkerLost
	case "server/stalled":
		return abi.Stalled
	case "server/protocol":
		return abi.Protocol
	case "server/too_large":
		return abi.TooLarge
	}
	switch f.Source {
	case failure.Cancelled:
		return abi.Cancelled
	case failure.Server, failure.Model:
		return abi.PeerFailed
	case failure.Config:
		return abi.Invalid
	default:
		return abi.Internal
	}
}
