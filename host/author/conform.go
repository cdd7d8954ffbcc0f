package author

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

// Conform holds a module, of any language, against the rules of the ABI: docs/plugins.md, "Conformance".
// A plugin that is made as testplugins/conform-go gets that one's cases, too.
//
// # Errors
//
// *RequestError for a file that cannot be read or a plugin that cannot do without a folder. A module that
// is refused is in the result.
func Conform(ctx context.Context, file string) (*Tested, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, &RequestError{"plugin test --conformance: " + err.Error()}
	}
	report := Check(file, b)
	checked := CaseResult{Name: "module", Builtin: true, Status: Pass}
	for _, f := range report.Findings {
		if f.Severity == Error {
			checked.Status, checked.Detail = Fail, strings.TrimSpace(checked.Detail+"\n"+f.Code+" "+f.Message)
		}
	}
	if report.Refused {
		out := &Tested{Plugin: file, SHA256: sum(b), Cases: []CaseResult{}}
		out.add(checked)
		return out, nil
	}
	g, err := openGuest(file, b, nil)
	if err != nil {
		return nil, err
	}
	defer g.close(ctx)
	out := g.report()
	out.add(checked)
	p, err := g.with(ctx, nil)
	if err != nil {
		out.add(CaseResult{Name: "init", Builtin: true, Status: Fail, Detail: err.Error()})
		return out, nil
	}
	out.add(g.initCase(ctx, p))
	cases := g.builtins(ctx, nil)
	if g.isConform() {
		cases = append(cases, conformCases()...)
	}
	for _, c := range cases {
		out.add(g.judge(ctx, c, g.call(ctx, c)))
	}
	for _, r := range g.rawChecks(ctx, p, "") {
		out.add(r)
	}
	beside, err := g.besideHostile(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, r := range beside {
		out.add(r)
	}
	return out, context.Cause(ctx)
}

// initCase holds the number of tasks that init says against the tasks.
func (g *guest) initCase(ctx context.Context, p *plugin.Plugin) CaseResult {
	r := CaseResult{Name: "init", Builtin: true, Status: Pass, Detail: "ABI " + p.ABI()}
	n := p.TaskCount()
	if n == nil || !p.Provides(abi.ProvidesTask) {
		return r
	}
	got := g.enumerate(ctx, p)
	if got.err == nil && int64(len(got.keys)) != min(*n, maxTasks) {
		r.Status, r.Detail = Fail, fmt.Sprintf("says that it has %d tasks and enumerates %d", *n, len(got.keys))
	}
	return r
}

// rawCheck is a request as bytes and what must come of it.
type rawCheck struct {
	name    string
	op      abi.Op
	request []byte
	want    string // ok, err, or "" for any answer
	roomy   bool   // too big may also be refused for lack of memory
	as      []byte // the answer must be the same as this request's
}

// rawChecks are what needs bytes that no host would send: those whose names begin with prefix.
func (g *guest) rawChecks(ctx context.Context, p rawCaller, prefix string) []CaseResult {
	var out []CaseResult
	for _, c := range g.rawCases() {
		if strings.HasPrefix(c.name, prefix) {
			out = append(out, g.rawCase(ctx, p, c))
		}
	}
	return out
}

func (g *guest) rawCase(ctx context.Context, raw rawCaller, c rawCheck) CaseResult {
	r := CaseResult{Name: c.name, Builtin: true, Status: Fail}
	got, memory, took, err := raw.CallRaw(ctx, c.op, c.request)
	r.Cost = Cost{TimeMS: float64(took.Microseconds()) / 1000, MemoryBytes: memory, InputBytes: len(c.request), OutputBytes: len(got)}
	if err != nil {
		r.Detail = err.Error()
		limit, isLimit := errors.AsType[*plugin.LimitError](err)
		response, isResponse := errors.AsType[*plugin.ResponseError](err)
		if c.roomy && (isLimit && limit.Kind == "memory" || isResponse && strings.Contains(response.Msg, "no room")) {
			r.Status = Pass
		}
		return r
	}
	key := envelopeKey(g.in.Manifest.Encoding, got)
	switch {
	case key == "":
		r.Detail = fmt.Sprintf("the answer is no envelope: %.100q", got)
		return r
	case c.want != "" && key != c.want:
		r.Detail = fmt.Sprintf("answered %s, want %s", key, c.want)
		return r
	}
	second := c.request
	if c.as != nil {
		second = c.as
	}
	again, _, _, err := raw.CallRaw(ctx, c.op, second)
	if err != nil || string(again) != string(got) {
		r.Detail = fmt.Sprintf("got %.200q, then %.200q, %v", got, again, err)
		return r
	}
	r.Status, r.Detail = Pass, key
	return r
}

// bigBytes is a request that a guest with little memory may refuse.
const bigBytes = 24 << 20

// probe is a request that the plugin should answer well, whatever it provides.
func (g *guest) probe() (abi.Op, any) {
	m := g.in.Manifest
	op, q := abi.OpTasks, any(abi.TasksRequest{Limit: 2})
	if s := firstScorer(m); s != nil {
		task := abi.Task{Key: "builtin", Data: map[string]any{"prompt": "q"}, Target: "42"}
		c := scorerCases(s, task, nil)[0]
		op, q, _ = g.request(c) // the scorer is the manifest's own
	}
	if firstScorer(m) == nil && !provides(m, abi.ProvidesTask) {
		op, q = abi.OpRollout, abi.RolloutRequest{Task: abi.Task{Key: "k", Data: map[string]any{}}}
	}
	return op, q
}

func (g *guest) rawCases() []rawCheck {
	encoding := g.in.Manifest.Encoding
	enc := func(v any) []byte { return encode(encoding, generic(v)) }
	op, q := g.probe()
	good := enc(q)
	checks := []rawCheck{
		{name: "bad: empty request", op: op, want: "err"},
		{name: "bad: one byte", op: op, request: []byte{0xc1}, want: "err"},
		{name: "bad: cut in the middle", op: op, request: good[:len(good)/2], want: "err"},
		{name: "bad: not a map", op: op, request: enc([]any{int64(1)}), want: "err"},
		{name: "bad: unknown op", op: 99, request: good, want: "err"},
		{name: "bad: unknown scorer", op: abi.OpScore, request: enc(abi.ScoreRequest{Scorer: "no_such_scorer"}), want: "err"},
		{name: "oversized", op: op, request: enc(map[string]any{"zz_grease": strings.Repeat("x", bigBytes), "scorer": "no_such_scorer"}), roomy: true},
		{name: "deterministic bytes", op: op, request: good},
	}
	for seed := range uint64(4) {
		greased := encode(encoding, grease(generic(q), rand.New(rand.NewPCG(seed, 1)))) //nolint:gosec // not for secrets
		checks = append(checks, rawCheck{name: fmt.Sprintf("grease %d", seed+1), op: op, request: greased, as: good})
	}
	return checks
}

func firstScorer(m *plugin.Manifest) *plugin.Scorer {
	for i := range m.Scorers {
		if m.Scorers[i].Kind != plugin.KindDriver {
			return &m.Scorers[i]
		}
	}
	return nil
}
