// Package conform_test builds the conforming plugin of every SDK that is not Go's, loads it as a host does
// and holds it against what conform-go does. A language whose toolchain is not here is skipped.
package conform_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/author"
	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestC(t *testing.T)              { conforms(t, "conform-c", buildC) }
func TestAssemblyScript(t *testing.T) { conforms(t, "conform-as", buildAssemblyScript) }
func TestRust(t *testing.T)           { conforms(t, "conform-rust", buildRust) }

func conforms(t *testing.T, name string, build func(testing.TB, string) string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a plugin with another toolchain")
	}
	file := module(t, name, build)
	p := load(t, newEngine(t), file, plugin.Spec{
		Options: map[string]any{"greeting": "good \"day\" \n\x01é😀"},
		Grants:  plugin.Grants{Env: &plugin.EnvGrant{Sampling: []string{"temperature"}}},
	})
	t.Run("tasks", func(t *testing.T) { tasks(t, p) })
	t.Run("length", func(t *testing.T) { length(t, p) })
	t.Run("echo", func(t *testing.T) { echo(t, p) })
	t.Run("misbehave", func(t *testing.T) { misbehave(t, p) })
	t.Run("assets", func(t *testing.T) { assets(t, p) })
	t.Run("kit", func(t *testing.T) { kit(t, file) })
	t.Run("spread", func(t *testing.T) { spread(t, p) })
	t.Run("huge", func(t *testing.T) { huge(t, p) })
	t.Run("drive", func(t *testing.T) { drive(t, p) })
	t.Run("server exited", func(t *testing.T) { serverExited(t, p) })
}

func newEngine(tb testing.TB) *plugin.Engine {
	tb.Helper()
	e, err := plugin.NewEngine(plugin.Options{CacheDir: tb.TempDir() + "/cache"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func load(tb testing.TB, e *plugin.Engine, source string, spec plugin.Spec) *plugin.Plugin {
	tb.Helper()
	spec.Source = source
	p, err := e.Load(context.Background(), spec)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

func score(p *plugin.Plugin, scorer, completion string) ([]abi.Score, error) {
	res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: scorer, Episode: abi.Episode{Completion: completion}})
	return res.Scores, err
}

// kit is what `wevalr plugin test --conformance` says.
func kit(t *testing.T, file string) {
	t.Helper()
	got, err := author.Conform(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range got.Cases {
		if c.Status == author.Fail {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

func tasks(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	var list []abi.Task
	if err := p.Tasks(context.Background(), func(task abi.Task) error { list = append(list, task); return nil }); err != nil {
		t.Fatal(err)
	}
	if n := p.TaskCount(); n == nil || *n != 3 || len(list) != 3 {
		t.Fatalf("got %d tasks, count %v", len(list), n)
	}
	want := abi.Task{
		Key:    "task-2",
		Data:   map[string]any{"prompt": "task 2", "number": int64(2), "nested": map[string]any{"list": []any{int64(1), 2.5, "x", nil, true}}},
		Target: "target 2", Choices: []string{"a", "b"}, Cluster: "cluster-0", Metadata: map[string]any{"i": int64(2)},
	}
	if got := list[2]; fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Errorf("got %#v\nwant %#v", got, want)
	}
}

func length(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	const seed = math.MinInt64 + 5
	res, err := p.Score(context.Background(), abi.ScoreRequest{
		Scorer: "length", Seed: seed, Task: abi.Task{Key: "k"},
		Episode: abi.Episode{
			Completion: "one two", Messages: []abi.Message{{Role: "user"}, {}}, StopCondition: "done",
			Info: map[string]any{"a": []any{nil, true, 0.1, "x\u2028\\\""}, "b": map[string]any{}}, Errors: []abi.TraceError{{Type: "E"}},
		},
	})
	if err != nil || len(res.Scores) != 3 {
		t.Fatalf("got %+v, %v", res.Scores, err)
	}
	first, words, nothing := res.Scores[0], res.Scores[1], res.Scores[2]
	if first.Name != "length" || *first.Value != 7 || first.Answer != "one two" || first.Label != "a label" || first.Explanation != "an explanation" {
		t.Errorf("length: got %+v", first)
	}
	if words.Name != "words" || *words.Value != 2 || nothing.Name != "nothing" || nothing.Value != nil {
		t.Errorf("got %+v and %+v", words, nothing)
	}
	want := map[string]any{
		"messages": int64(2), "info": map[string]any{"a": []any{nil, true, 0.1, "x\u2028\\\""}, "b": map[string]any{}},
		"stop_condition": "done", "errors": int64(1), "seed": int64(seed), "key": "k",
	}
	if got := first.Metadata; fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
		t.Errorf("metadata: got %#v\nwant %#v", got, want)
	}
}

// What is read is what is written: numbers to the last bit, texts in every kind of character.
func echo(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	numbers := map[string]float64{
		"0": 0, "-0.5": -0.5, "0.1": 0.1, "3.14159265358979": 3.14159265358979, "1e22": 1e22, "-1.5e-7": -1.5e-7, "123456789012345": 123456789012345,
		"9007199254740991": 9007199254740991, "9007199254740993": 9007199254740992, "123456789012345678901234567890": 123456789012345678901234567890,
		"4.9e-324": 5e-324, "2.2250738585072011e-308": 2.2250738585072011e-308, "2.4703282292062328e-324": 5e-324, "2.4703282292062327e-324": 0,
		"0.500000000000000166533453693773481063544750213623046875": 0.5000000000000002, "8.5e15": 8.5e15, "999999999999999999999": 1e21,
		"2.5e300": 2.5e300, "1e-300": 1e-300, "0.30000000000000004": 0.30000000000000004, "1.7976931348623157e308": math.MaxFloat64,
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		if v := math.Float64frombits(random.Uint64()); v == v && !math.IsInf(v, 0) {
			numbers[strconv.FormatFloat(v, 'e', -1, 64)], numbers[strconv.FormatFloat(v, 'e', 30, 64)] = v, v
		}
		v := math.Round(random.Float64()*1e6) / 1e4
		numbers[strconv.FormatFloat(v, 'f', -1, 64)] = v
	}
	for text, want := range numbers {
		got, err := score(p, "echo", text)
		if err != nil || got[0].Value == nil || *got[0].Value != want {
			t.Errorf("%s: got %s, %v want %v", text, show(got), err, want)
		}
	}
	for _, text := range []string{"", "x", "1x", "é€😀", "\"\\/\b\f\n\r\t\x01\x1f\x7f", "\u2028\u2029<>&", "\ufffd"} {
		got, err := score(p, "echo", text)
		// The host's own cleaning of control characters is not the plugin's matter.
		if err != nil || got[0].Value != nil || clean(got[0].Answer) != clean(text) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

func show(list []abi.Score) string {
	b, err := json.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 32 || r == 127 || r == 0x2028 || r == 0x2029 || r == 0xfffd {
			return -1
		}
		return r
	}, s)
}

func misbehave(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	for _, completion := range []string{"none", "twice", "range", "nan", "inf", "huge"} {
		_, err := score(p, "misbehave", completion)
		if bad, ok := errors.AsType[*plugin.ResponseError](err); !ok || failure.Of(bad).Kind != "response" {
			t.Errorf("%s: got %v, want a ResponseError", completion, err)
		}
	}
	_, err := score(p, "misbehave", "error")
	if g, ok := errors.AsType[*plugin.GuestError](err); !ok || g.Code != "own_code" || g.Message != "an error of the plugin" || !g.Retryable || g.Data["n"] != int64(1) {
		t.Errorf("error: got %+v", err)
	}
	_, err = score(p, "misbehave", "panic")
	if trap, ok := errors.AsType[*plugin.TrapError](err); !ok || !strings.Contains(trap.Panic, "a panic of the plugin") {
		t.Errorf("panic: got %+v", err)
	}
	_, err = score(p, "misbehave", "env")
	if g, ok := errors.AsType[*plugin.GuestError](err); !ok || g.Code != "denied" {
		t.Errorf("env in a scorer: got %+v, want denied", err)
	}
	if got, err := score(p, "misbehave", ""); err != nil || *got[0].Value != 1 {
		t.Errorf("after all that: got %+v, %v", got, err)
	}
}

func assets(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	got, err := score(p, "assets", "")
	if err != nil {
		t.Fatal(err)
	}
	m := got[0].Metadata
	if m["asset"] != "an asset" || m["missing"] != "not_found" || m["greeting"] != "good \"day\" \n\x01é😀" {
		t.Errorf("got %#v", m)
	}
}

func spread(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	for want, episodes := range map[float64][]abi.Episode{3: {{Completion: "abcd"}, {Completion: "a"}, {Completion: "ab"}}, 0: {{Completion: "x"}}} {
		res, err := p.ScoreGroup(context.Background(), abi.ScoreGroupRequest{Scorer: "spread", Episodes: episodes})
		if err != nil || *res.Scores[0].Value != want {
			t.Errorf("got %+v, %v want %v", res.Scores, err, want)
		}
	}
	res, err := p.ScoreGroup(context.Background(), abi.ScoreGroupRequest{Scorer: "spread", Episodes: []abi.Episode{}})
	if err != nil || res.Scores[0].Value != nil {
		t.Errorf("no episodes: got %+v, %v, want a skipped score", res.Scores, err)
	}
}

// A request of megabytes is read, and the next one is not hurt by it; one past the memory is a failure.
func huge(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	const size = 2 << 20
	for _, completion := range []string{strings.Repeat("x", size), "a", strings.Repeat("\n", size/2), strings.Repeat("\x01", size/8)} {
		got, err := score(p, "spread-free", completion)
		if err == nil {
			t.Errorf("an unknown scorer answered %+v", got)
		}
		got, err = score(p, "misbehave", completion)
		if err != nil || *got[0].Value != 1 {
			t.Errorf("%d bytes: got %+v, %v", len(completion), got, err)
		}
	}
	if got, err := score(p, "misbehave", strings.Repeat("x", abi.MaxRequest-4<<10)); err == nil {
		t.Errorf("64 MiB in 64 MiB of memory: got %+v", got)
	} else if failure.Of(err).Kind == "" {
		t.Errorf("64 MiB: got %v", err)
	}
	// Deeper than a reader goes: an error of the plugin's own, or none.
	deep := any("x")
	for range 10_000 {
		deep = []any{deep}
	}
	_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "length", Episode: abi.Episode{Info: map[string]any{"a": deep}}})
	if g, ok := errors.AsType[*plugin.GuestError](err); !ok || g.Code != "bad_request" {
		t.Errorf("10,000 lists: got %v, want bad_request", err)
	}
}

type env struct {
	f func(ctx context.Context, n int, req abi.EnvRequest) (*abi.Episode, error)

	mu      sync.Mutex
	n       int
	running int
	prompts []string
}

func (e *env) Run(ctx context.Context, _ int, req abi.EnvRequest) (int, *abi.Episode, error) {
	e.mu.Lock()
	e.n++
	e.running++
	n := e.n
	prompt, _ := req.TaskData["prompt"].(string)
	e.prompts = append(e.prompts, prompt)
	e.mu.Unlock()
	ep, err := e.f(ctx, n, req)
	e.mu.Lock()
	e.running--
	e.mu.Unlock()
	return 100 + n, ep, err
}

func rollout(p *plugin.Plugin, how string, e *env) (plugin.RolloutResult, error) {
	return p.Rollout(context.Background(), abi.RolloutRequest{Task: abi.Task{Key: "k", Data: map[string]any{"drive": how, "prompt": "p"}}}, e)
}

func answer(_ context.Context, n int, _ abi.EnvRequest) (*abi.Episode, error) {
	return &abi.Episode{Completion: fmt.Sprint("answer ", n)}, nil
}

func drive(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	cancelled := func(ctx context.Context, n int, req abi.EnvRequest) (*abi.Episode, error) {
		if n == 1 {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return answer(ctx, n, req)
	}
	for _, c := range []struct {
		how  string
		refs string
		code string // of the plugin's own error
		f    func(context.Context, int, abi.EnvRequest) (*abi.Episode, error)
	}{
		{"run", "[101]", "", answer},
		{"chain", "[101 102]", "", answer},
		{"await", "3", "", answer},
		{"cancel", "[102]", "", cancelled},
		{"take", "[102]", "", answer},
		{"sampling", "[101]", "", answer},
		{"ungranted", "", "denied", answer},
		{"nonsense", "", "bad_drive", answer},
		{"run", "", "internal", func(context.Context, int, abi.EnvRequest) (*abi.Episode, error) { return nil, errors.New("x") }},
	} {
		e := &env{f: c.f}
		res, err := rollout(p, c.how, e)
		if c.code != "" {
			if g, ok := errors.AsType[*plugin.GuestError](err); !ok || g.Code != c.code {
				t.Errorf("%s: got %v want %s", c.how, err, c.code)
			}
		} else if got := fmt.Sprint(res.Refs); err != nil || got != c.refs && c.refs != fmt.Sprint(len(res.Refs)) || res.Selected != len(res.Refs)-1 ||
			len(res.Scores) != 1 || *res.Scores[0].Value != float64(len(res.Refs)) {
			t.Errorf("%s: got %+v, %v want %s", c.how, res, err, c.refs)
		}
		if e.running != 0 {
			t.Errorf("%s: %d calls still run", c.how, e.running)
		}
		if c.how == "chain" && fmt.Sprint(e.prompts) != "[p answer 1]" {
			t.Errorf("chain: got prompts %q", e.prompts)
		}
	}
	if _, err := rollout(p, "close", &env{f: answer}); err == nil || !strings.Contains(err.Error(), "not an open handle") {
		t.Errorf("close: got %v", err)
	}
}

// The env-server's end reaches the guest as a status with its facts. The guest may go on, or pass it on.
func serverExited(t *testing.T, p *plugin.Plugin) {
	t.Helper()
	code := int64(23)
	exited := &abi.EnvError{Status: abi.ServerExited, Source: "server", Kind: "exited", Message: "exit code 23", Server: &abi.ServerFacts{Generation: 4, Code: &code, UptimeS: 1.5, Tail: []string{"bye"}}}
	first := func(ctx context.Context, n int, req abi.EnvRequest) (*abi.Episode, error) {
		if n == 1 {
			return nil, exited
		}
		return answer(ctx, n, req)
	}
	if res, err := rollout(p, "survive", &env{f: first}); err != nil || fmt.Sprint(res.Refs) != "[102]" {
		t.Errorf("survive: got %+v, %v", res, err)
	}
	_, err := rollout(p, "run", &env{f: first})
	g, ok := errors.AsType[*plugin.GuestError](err)
	if !ok || g.Code != "server_exited" || g.Message != "exit code 23" {
		t.Fatalf("run: got %+v", err)
	}
	want := map[string]any{"source": "server", "kind": "exited", "server": map[string]any{"generation": int64(4), "code": int64(23), "uptime_s": 1.5, "tail": []any{"bye"}}}
	if fmt.Sprint(g.Data) != fmt.Sprint(want) {
		t.Errorf("data: got %v want %v", g.Data, want)
	}
}
