package author

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/hostile"
)

// hostileCalls is how often each module is called: the second call must end as the first.
const hostileCalls = 2

// besideHostile runs the hostile kit in the plugin's own engine. Each module must end as the kit says, and
// after it the plugin must answer the same request with the same bytes. One result for each part of the kit.
func (g *guest) besideHostile(ctx context.Context, p rawCaller) ([]CaseResult, error) {
	dir, err := os.MkdirTemp("", "wevalr-hostile-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	folder, err := hostile.Folder(dir)
	if err != nil {
		return nil, err
	}
	op, q := g.probe()
	request := encode(g.in.Manifest.Encoding, generic(q))
	want := answered(p.CallRaw(ctx, op, request))
	var out []CaseResult
	var count int
	for _, m := range hostile.Modules() {
		name := "hostile: " + m.Part
		if len(out) == 0 || out[len(out)-1].Name != name {
			out, count = append(out, CaseResult{Name: name, Builtin: true, Status: Pass}), 0
		}
		r := &out[len(out)-1]
		begin := time.Now()
		err := g.attack(ctx, &m, dir, folder)
		if got := answered(p.CallRaw(ctx, op, request)); got != want {
			err = errors.Join(err, fmt.Errorf("after it the plugin gave %.200q, before %.200q", got, want))
		}
		r.Cost.TimeMS += float64(time.Since(begin).Microseconds()) / 1000
		count++
		switch {
		case ctx.Err() != nil:
			return out, nil
		case err != nil && r.Status == Pass:
			r.Status, r.Detail = Fail, fmt.Sprintf("%s: %v", m.Name, err)
		case err != nil:
			r.Detail += fmt.Sprintf("\n%s: %v", m.Name, err)
		case r.Status == Pass:
			r.Detail = fmt.Sprintf("%d modules", count)
		}
	}
	return out, nil
}

// answered is what a raw call gave.
func answered(response []byte, _ uint64, _ time.Duration, err error) string {
	if err != nil {
		return err.Error()
	}
	return string(response)
}

// attack loads and calls a module, and says what was not as the kit has it.
func (g *guest) attack(ctx context.Context, m *hostile.Module, dir, folder string) error {
	file := filepath.Join(dir, "hostile.wasm")
	if err := os.WriteFile(file, m.Wasm, 0o600); err != nil {
		return err
	}
	spec := plugin.Spec{Source: file, Limits: plugin.Limits{Fuel: hostile.Fuel}}
	if m.Op == abi.OpRollout {
		spec.Grants.Env = &plugin.EnvGrant{Sampling: []string{"temperature"}}
		spec.Limits.Fuel /= 15 // a rollout gets so many times a score's: plugin.Limits
	}
	if m.Folder {
		spec.Grants.FS = map[string]string{"dataset": folder}
	}
	begin := time.Now()
	p, err := g.engine.Load(ctx, spec)
	wrong := m.Loading(outcome(nil, err, time.Since(begin)))
	if err != nil {
		return wrong
	}
	var first hostile.Outcome
	for i := 0; i < hostileCalls && wrong == nil; i++ {
		begin := time.Now()
		answer, err := callHostile(ctx, p, m.Op)
		o := outcome(answer, err, time.Since(begin))
		if i == 0 {
			first = o
		}
		wrong = m.Call(o, first)
	}
	return errors.Join(wrong, p.Close(ctx))
}

func callHostile(ctx context.Context, p *plugin.Plugin, op abi.Op) (any, error) {
	switch op {
	case abi.OpRollout:
		return p.Rollout(ctx, abi.RolloutRequest{}, &env{answer: func(context.Context, int, abi.EnvRequest) (*abi.Episode, error) {
			return &abi.Episode{Completion: "42"}, nil
		}})
	case abi.OpTasks:
		return nil, p.Tasks(ctx, func(abi.Task) error { return nil })
	default:
		r, err := p.Score(ctx, abi.ScoreRequest{Scorer: "any"})
		r.Took = 0 // what differs between equal calls
		return r, err
	}
}

func outcome(answer any, err error, took time.Duration) hostile.Outcome {
	if err == nil {
		return hostile.Outcome{Text: text(answer), Took: took}
	}
	o := hostile.Outcome{Kind: failure.Of(err).Kind, Text: err.Error(), Took: took}
	if a, ok := errors.AsType[*plugin.ABIError](err); ok {
		o.Step = a.Step
	}
	return o
}
