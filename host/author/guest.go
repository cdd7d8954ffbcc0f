package author

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

// guest is a module under test: one loaded plugin for each set of options.
type guest struct {
	engine *plugin.Engine
	spec   plugin.Spec
	in     *plugin.Inspection
	loaded map[string]*plugin.Plugin
}

// result is what one call gave, and what it cost.
type result struct {
	scores   []abi.Score
	selected int
	rollout  bool
	keys     []string // of tasks
	err      error
	code     string // of err: the plugin's own, or what the host calls it
	fuel     uint64
	took     time.Duration
	// In bytes, as the plugin's encoding has them; memory 0 = not measured.
	memory         uint64
	input, output  int
	tasks          []abi.Task
	running, calls int // of the env: still running at the end, in all
}

func (r result) errorText() string {
	if r.err == nil {
		return ""
	}
	return r.code + ": " + r.err.Error()
}

// same is what two runs of one call must have in common.
func (r result) same() string {
	return text([]any{r.scores, r.selected, r.keys, r.code})
}

// The limits of a case: those that a run has without limits in its eval file.
const (
	scoreWall = 8 * time.Second
	maxTasks  = 1000 // of an enumeration
)

// openGuest prepares a module. folders are bound to fs requests of their names; everything else that the
// manifest cannot do without is granted, and nothing optional but the env and task data keys.
func openGuest(file string, module []byte, folders map[string]string) (*guest, error) {
	in, err := plugin.Inspect(file, module)
	if err != nil {
		return nil, err
	}
	q := &in.Manifest.Capabilities
	spec := plugin.Spec{Source: file, Digest: in.SHA256, Limits: plugin.Limits{ScoreWall: scoreWall}}
	if q.Env != nil {
		spec.Grants.Env = &plugin.EnvGrant{Sampling: q.Env.Sampling}
	}
	if q.TaskEnv != nil {
		spec.Grants.TaskEnv = q.TaskEnv.Keys
	}
	if q.Vars != nil && !q.Vars.Optional {
		spec.Grants.Vars = q.Vars.Names
	}
	spec.Grants.Clock = q.Clock != nil && !q.Clock.Optional
	spec.Grants.Random = q.Random != nil && !q.Random.Optional
	spec.Grants.FS = map[string]string{}
	for name, c := range q.FS {
		dir, there := folders[name]
		switch {
		case there:
			spec.Grants.FS[name] = dir
		case !c.Optional:
			return nil, &RequestError{fmt.Sprintf("plugin test: the plugin needs fs.%s: put the files for its cases into cases/data/%s", name, name)}
		}
	}
	engine, err := plugin.NewEngine(plugin.Options{HostVersion: "plugin-test"})
	if err != nil {
		return nil, err
	}
	return &guest{engine: engine, spec: spec, in: in, loaded: map[string]*plugin.Plugin{}}, nil
}

func (g *guest) close(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, p := range g.loaded {
		_ = p.Close(ctx)
	}
	_ = g.engine.Close(ctx)
}

// with gives the plugin under these options.
func (g *guest) with(ctx context.Context, options map[string]any) (*plugin.Plugin, error) {
	key := text(options)
	if p := g.loaded[key]; p != nil {
		return p, nil
	}
	spec := g.spec
	spec.Options = options
	p, err := g.engine.Load(ctx, spec)
	if err != nil {
		return nil, err
	}
	g.loaded[key] = p
	return p, nil
}

// call runs a case's call once.
func (g *guest) call(ctx context.Context, c *Case) result {
	p, err := g.with(ctx, c.Options)
	if err != nil {
		return failed(result{}, err)
	}
	switch c.kind() {
	case "score":
		return g.score(ctx, p, c)
	case "rollout":
		return g.drive(ctx, p, c)
	}
	return g.enumerate(ctx, p)
}

func failed(r result, err error) result {
	r.err, r.code = err, failure.Of(err).Kind
	return r
}

// own reports whether a plugin declared its failure itself: anything else breaks the contract.
func own(err error) bool {
	_, ok := errors.AsType[*plugin.GuestError](err)
	return ok
}

func (g *guest) scorer(name string) (*plugin.Scorer, error) {
	var names []string
	for i := range g.in.Manifest.Scorers {
		s := &g.in.Manifest.Scorers[i]
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, &RequestError{fmt.Sprintf("the plugin has no scorer %q, only %q", name, names)}
}

// request is a score's as the scorer gets it: abi.ScoreRequest or abi.ScoreGroupRequest.
func (g *guest) request(c *Case) (abi.Op, any, error) {
	s, err := g.scorer(c.Scorer)
	if err != nil {
		return 0, nil, err
	}
	views := s.Views()
	if c.Episode != nil {
		return abi.OpScore, abi.ScoreRequest{Scorer: c.Scorer, Task: *c.Task, Episode: only(*c.Episode, views), Seed: c.Seed}, nil
	}
	q := abi.ScoreGroupRequest{Scorer: c.Scorer, Task: *c.Task, Seed: c.Seed, Episodes: []abi.Episode{}}
	for _, ep := range c.Episodes {
		q.Episodes = append(q.Episodes, only(ep, views))
	}
	return abi.OpScoreGroup, q, nil
}

func (g *guest) score(ctx context.Context, p *plugin.Plugin, c *Case) result {
	op, q, err := g.request(c)
	if err != nil {
		return failed(result{}, err)
	}
	var r plugin.Result
	switch q := q.(type) {
	case abi.ScoreRequest:
		r, err = p.Score(ctx, q)
	case abi.ScoreGroupRequest:
		r, err = p.ScoreGroup(ctx, q)
	}
	out := result{scores: r.Scores, fuel: r.Fuel, took: r.Took}
	out.input, out.output = g.size(q), g.size(map[string]any{"ok": abi.ScoreResponse{Scores: r.Scores}})
	if err != nil {
		out.output = 0
		return failed(out, err)
	}
	if _, memory, _, err := p.CallRaw(ctx, op, encode(g.in.Manifest.Encoding, generic(q))); err == nil {
		out.memory = memory
	}
	return out
}

// size is how many bytes v takes in the plugin's encoding.
func (g *guest) size(v any) int { return len(encode(g.in.Manifest.Encoding, generic(v))) }

func (g *guest) enumerate(ctx context.Context, p *plugin.Plugin) result {
	var out result
	enough := errors.New("enough")
	start := time.Now()
	err := p.Tasks(ctx, func(t abi.Task) error {
		out.keys = append(out.keys, t.Key)
		out.tasks = append(out.tasks, t)
		if len(out.tasks) == maxTasks {
			return enough
		}
		return nil
	})
	out.took = time.Since(start)
	if err != nil && !errors.Is(err, enough) {
		return failed(out, err)
	}
	out.output = g.size(out.tasks)
	return out
}

func (g *guest) drive(ctx context.Context, p *plugin.Plugin, c *Case) result {
	view := g.in.Manifest.RolloutView()
	if c.answer != nil {
		return g.driveWith(ctx, p, c, c.answer)
	}
	return g.driveWith(ctx, p, c, func(_ context.Context, n int, _ abi.EnvRequest) (*abi.Episode, error) {
		if n > len(c.Replies) {
			return nil, &abi.EnvError{Status: abi.PeerFailed, Source: "server", Kind: "peer_error", Message: fmt.Sprintf("the case has %d replies, this is call %d", len(c.Replies), n)}
		}
		ep := only(c.Replies[n-1], view)
		return &ep, nil
	})
}

func (g *guest) driveWith(ctx context.Context, p *plugin.Plugin, c *Case, answer answerFunc) result {
	e := &env{answer: answer}
	q := abi.RolloutRequest{Task: *c.Task, Seed: c.Seed}
	start := time.Now()
	r, err := p.Rollout(ctx, q, e)
	out := result{scores: r.Scores, selected: r.Selected, rollout: true, took: time.Since(start), input: g.size(q)}
	e.mu.Lock()
	out.running, out.calls = e.running, e.calls
	e.mu.Unlock()
	if err != nil {
		return failed(out, err)
	}
	return out
}

// answerFunc plays the env-server: n counts the calls from 1.
type answerFunc func(ctx context.Context, n int, req abi.EnvRequest) (*abi.Episode, error)

// env is a plugin.Env that counts.
type env struct {
	mu             sync.Mutex
	calls, running int
	answer         answerFunc
}

// Run implements plugin.Env.
func (e *env) Run(ctx context.Context, _ int, req abi.EnvRequest) (int, *abi.Episode, error) {
	e.mu.Lock()
	e.calls++
	e.running++
	n := e.calls
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.running--
		e.mu.Unlock()
	}()
	ep, err := e.answer(ctx, n, req)
	return n, ep, err
}
