// Command best-of-n is a plugin that drives rollouts: it samples n candidates of a task side by side
// and selects one. Its driver scorer `candidates` counts those that came to an episode.
//
// A candidate that fails is left out as long as another one comes through. The end of the env-server
// ends the rollout with the error that the SDK gives (code "server_exited", the facts as data) or, with
// on_exit = "best", with what had arrived.
package main

import (
	"errors"
	"unicode/utf8"

	"github.com/wevalr/wevalr/plugins/sdk"
)

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{Init: p.init, Rollout: p.rollout})
}

func main() {}

type plugin struct {
	n           int
	temperature float64
	choose      string
	onExit      string
}

func (p *plugin) init(o *sdk.Options) error {
	p.n = o.Int("n", 4)
	p.temperature = o.Float("temperature", 0.8)
	p.choose = o.String("select", "longest")
	p.onExit = o.String("on_exit", "fail")
	switch {
	case p.n < 1 || p.n > 1024:
		return sdk.NewError("bad_option", "option n: must be between 1 and 1024")
	case p.choose != "longest" && p.choose != "shortest" && p.choose != "first":
		return sdk.NewError("bad_option", "option select: must be longest, shortest or first")
	case p.onExit != "fail" && p.onExit != "best":
		return sdk.NewError("bad_option", "option on_exit: must be fail or best")
	}
	return nil
}

func (p *plugin) rollout(env *sdk.Env, r sdk.RolloutRequest) (sdk.Rollout, error) {
	req := sdk.EnvRequest{TaskData: r.Task.Data}
	if p.temperature >= 0 {
		req.Sampling = map[string]any{"temperature": p.temperature}
	}
	var out sdk.Rollout
	var failed error
	started := 0
	for range p.n {
		if _, err := env.Start(req); err != nil {
			if !p.survives(err) {
				return out, err
			}
			failed = err
			break
		}
		started++
	}
	best := 0
	for range started {
		h, err := env.AwaitAny(-1)
		if err != nil {
			return out, err
		}
		ep, err := h.Take()
		if err != nil {
			h.Close()
			sdk.Log(sdk.LevelWarn, "candidate failed", "index", r.Index, "err", err)
			if !p.survives(err) {
				return out, err
			}
			failed = err
			continue
		}
		length := utf8.RuneCountInString(ep.Completion)
		if len(out.Episodes) == 0 || p.better(length, best) {
			out.Selected, best = len(out.Episodes), length
		}
		out.Episodes = append(out.Episodes, h)
	}
	if len(out.Episodes) == 0 {
		return out, failed
	}
	count := sdk.Number(float64(len(out.Episodes)))
	count.Name = "candidates"
	out.Scores = []sdk.Score{count}
	return out, nil
}

func (p *plugin) better(length, best int) bool {
	return p.choose == "longest" && length > best || p.choose == "shortest" && length < best
}

// survives reports whether the rollout goes on without the candidate that err ended.
func (p *plugin) survives(err error) bool {
	if _, ok := errors.AsType[*sdk.ServerExitedError](err); ok {
		return p.onExit == "best"
	}
	var peer *sdk.PeerError
	return errors.As(err, &peer)
}
