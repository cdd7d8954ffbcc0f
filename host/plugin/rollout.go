package plugin

import (
	"context"

	"github.com/wevalr/wevalr/plugins/abi"
)

// RolloutResult is what a plugin-driven rollout gives: Env's refs of the episodes that make it up,
// which of them (a position in Refs) is the selected one, and driver scores.
type RolloutResult struct {
	Refs     []int
	Selected int
	Scores   []abi.Score
}

// Rollout runs op 3 on an instance of its own. When it returns, no call of env is running: what
// was left has been cancelled and awaited. The end of ctx cancels env's calls; the guest may still
// answer.
func (p *Plugin) Rollout(ctx context.Context, req abi.RolloutRequest, env Env) (RolloutResult, error) {
	var out RolloutResult
	err := p.withBudget(ctx, func() error {
		var err error
		out, err = p.rollout(ctx, req, env)
		return err
	})
	return out, err
}

func (p *Plugin) rollout(ctx context.Context, req abi.RolloutRequest, env Env) (RolloutResult, error) {
	var out RolloutResult
	err := p.withOwn(ctx, func(in *instance) error {
		c := p.newCall(abi.OpRollout, req.Seed)
		if p.grants.Env != nil && env != nil {
			table := newEnvTable(env, p.manifest.Encoding, p.grants)
			c.env, c.start = table, func(raw []byte) int32 { return table.start(ctx, raw) }
			defer table.end()
		}
		var resp abi.RolloutResponse
		err := p.onCore(ctx, c, func() error {
			_, err := p.ask(ctx, in, c, req, &resp)
			return err
		})
		if err != nil {
			return err
		}
		out, err = p.checkRollout(c, resp)
		return err
	})
	if err != nil {
		return RolloutResult{}, err
	}
	return out, nil
}

func (p *Plugin) checkRollout(c *call, resp abi.RolloutResponse) (RolloutResult, error) {
	const op = abi.OpRollout
	out := RolloutResult{Scores: resp.Scores}
	if len(resp.Episodes) == 0 || len(resp.Episodes) > abi.MaxHandles {
		return out, p.badResponse(op, "%d episodes, want 1 to %d", len(resp.Episodes), abi.MaxHandles)
	}
	seen := map[int64]bool{}
	for _, h := range resp.Episodes {
		if seen[h] {
			return out, p.badResponse(op, "handle %d named twice", h)
		}
		seen[h] = true
		ref, ok := 0, false
		if c.env != nil {
			ref, ok = c.env.ref(h)
		}
		if !ok {
			return out, p.badResponse(op, "handle %d is not an open handle of this call with an episode", h)
		}
		out.Refs = append(out.Refs, ref)
	}
	if resp.Selected < 0 || resp.Selected >= int64(len(resp.Episodes)) {
		return out, p.badResponse(op, "selected = %d, but there are %d episodes", resp.Selected, len(resp.Episodes))
	}
	out.Selected = int(resp.Selected)
	given := map[string]bool{}
	for i := range out.Scores {
		sc := &out.Scores[i]
		s := p.manifest.scorer(sc.Name)
		if s == nil || s.Kind != KindDriver {
			return out, p.badResponse(op, "score %q: the plugin has no scorer of that name and kind driver", cut(sc.Name, 100))
		}
		if given[sc.Name] {
			return out, p.badResponse(op, "score %s given twice", sc.Name)
		}
		given[sc.Name] = true
		if err := p.checkScore(op, s, sc); err != nil {
			return out, err
		}
	}
	return out, nil
}
