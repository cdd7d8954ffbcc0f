package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/plugins/abi"
)

func needBuild(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds plugins for wasip1")
	}
}

// TestShipped builds the shipped plugins from their folders and drives them.
func TestShipped(t *testing.T) {
	needBuild(t)
	root, e := hosttest.Root(t), newEngine(t)
	dataset := t.TempDir()
	for name, text := range map[string]string{
		"test.jsonl":  `{"question": "1+1?", "answer": "it is\n#### 2"}` + "\n",
		"tasks.jsonl": `{"key": "one", "prompt": "1+1?", "target": "2", "note": 1}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dataset, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	withData := Grants{FS: map[string]string{"dataset": dataset}}

	t.Run("arith", func(t *testing.T) {
		p := load(t, e, Spec{Source: filepath.Join(root, "plugins/arith"), Options: map[string]any{"tasks": 7}})
		tasks := allTasks(t, p)
		if len(tasks) != 7 || p.TaskCount() == nil || *p.TaskCount() != 7 {
			t.Fatalf("%d tasks, count %v, want 7", len(tasks), p.TaskCount())
		}
		right := fmt.Sprint(tasks[0].Target)
		for answer, want := range map[string]float64{right: 1, right + "0": 0} {
			if got := scoreOf(t, p, "correct", tasks[0], answer); got != want {
				t.Errorf("%q scores %v, want %v", answer, got, want)
			}
		}
	})
	t.Run("gsm8k", func(t *testing.T) {
		p := load(t, e, Spec{Source: filepath.Join(root, "plugins/gsm8k"), Grants: withData})
		tasks := allTasks(t, p)
		if len(tasks) != 1 {
			t.Fatalf("%d tasks, want 1", len(tasks))
		}
		if got := scoreOf(t, p, "strict", tasks[0], "so\n#### 2"); got != 1 {
			t.Errorf("strict = %v, want 1", got)
		}
	})
	t.Run("jsonl and exact-match", func(t *testing.T) {
		p := load(t, e, Spec{Source: filepath.Join(root, "plugins/jsonl"), Grants: withData})
		tasks := allTasks(t, p)
		if len(tasks) != 1 || tasks[0].Key != "one" {
			t.Fatalf("tasks = %+v", tasks)
		}
		m := load(t, e, Spec{Source: filepath.Join(root, "plugins/exact-match")})
		if got := scoreOf(t, m, "match", tasks[0], "2"); got != 1 {
			t.Errorf("match = %v, want 1", got)
		}
	})
	t.Run("cheaters", func(t *testing.T) {
		one := 1.0
		for source, scorer := range map[string]string{"gsm8k": "strict", "exact-match": "match", "numeric": "correct"} {
			p := load(t, e, Spec{Source: filepath.Join(root, "plugins", source)})
			scorer = p.Scorers()[max(slices.IndexFunc(p.Scorers(), func(s Scorer) bool { return s.Name == scorer }), 0)].Name
			for answer, want := range map[string]float64{
				"#### 42": 1, "#### 41": 0, `{"reward": 1.0}`: 0, `{"ok":{"scores":[{"value":1}]}}`: 0,
				"task.target": 0, "__import__('os').system('echo 42')*0": 0, "": 0,
			} {
				if source == "exact-match" && want == 1 {
					answer = "42"
				}
				ep := episode(answer)
				// What the env-server says of itself is no score of the plugin's.
				ep.Rewards, ep.Info = map[string]*abi.Reward{"reward": {Score: 1, Weight: 1}}, map[string]any{"score": 1, "target": "42"}
				ep.Metrics = map[string]*float64{scorer: &one}
				res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: scorer, Task: abi.Task{Key: "k", Target: "42"}, Episode: *ep})
				if err != nil {
					t.Errorf("%s, %q: %v", source, answer, err)
					continue
				}
				if got := res.Scores[0].Value; want == 1 && (got == nil || *got != 1) || want == 0 && got != nil && *got != 0 {
					t.Errorf("%s, %q: scores %+v, want %v", source, answer, res.Scores[0], want)
				}
			}
		}
	})
	t.Run("jsonl without its folder", func(t *testing.T) {
		_, err := e.Load(context.Background(), Spec{Alias: "mine", Source: filepath.Join(root, "plugins/jsonl")})
		var g *GrantError
		if !errors.As(err, &g) || g.Problems[0].Add == "" || g.Problems[0].Capability != "fs.dataset" {
			t.Errorf("got %v, want a GrantError with the line to add", err)
		}
	})
}

func allTasks(t *testing.T, p *Plugin) []abi.Task {
	t.Helper()
	var tasks []abi.Task
	if err := p.Tasks(context.Background(), func(task abi.Task) error { tasks = append(tasks, task); return nil }); err != nil {
		t.Fatal(err)
	}
	return tasks
}

func scoreOf(t *testing.T, p *Plugin, scorer string, task abi.Task, answer string) float64 {
	t.Helper()
	res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: scorer, Task: task, Episode: abi.Episode{Completion: answer}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Scores[0].Value == nil {
		t.Fatalf("score %+v is skipped", res.Scores[0])
	}
	return *res.Scores[0].Value
}

// TestBestOfN drives a rollout plugin through a living and a dying env-server.
func TestBestOfN(t *testing.T) {
	needBuild(t)
	e := newEngine(t)
	grants := Grants{Env: &EnvGrant{Sampling: []string{"temperature"}}}
	dir := filepath.Join(hosttest.Root(t), "testplugins/best-of-n")
	p := load(t, e, Spec{Source: dir, Grants: grants})
	task := abi.RolloutRequest{Task: abi.Task{Key: "k", Data: map[string]any{"q": int64(1)}}, Seed: 7}

	t.Run("selects", func(t *testing.T) {
		env := &fakeEnv{f: func(_ context.Context, n int, req abi.EnvRequest) (*abi.Episode, error) {
			if req.Sampling["temperature"] != 0.8 || req.TaskData["q"] != int64(1) {
				t.Errorf("request %+v", req)
			}
			return episode(strings.Repeat("x", n)), nil
		}}
		res, err := p.Rollout(context.Background(), task, env)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Refs) != 4 || res.Refs[res.Selected] != 104 || *res.Scores[0].Value != 4 {
			t.Errorf("got %+v, want the longest of four", res)
		}
	})
	t.Run("server exits", func(t *testing.T) {
		_, err := p.Rollout(context.Background(), task, dying(2))
		var g *GuestError
		if !errors.As(err, &g) || g.Code != "server_exited" {
			t.Fatalf("got %v, want the guest's server_exited", err)
		}
		if f := failure.Of(err); f.Source != failure.Plugin || !strings.Contains(fmt.Sprint(f.Data), "23") {
			t.Errorf("got %+v, want the exit code 23 in it", f)
		}
	})
	t.Run("server exits, best of what is there", func(t *testing.T) {
		q := load(t, e, Spec{Alias: "best", Source: dir, Grants: grants, Options: map[string]any{"on_exit": "best"}})
		res, err := q.Rollout(context.Background(), task, dying(2))
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Refs) != 2 || *res.Scores[0].Value != 2 {
			t.Errorf("got %+v, want two candidates", res)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if _, err := p.Rollout(context.Background(), task, &fakeEnv{f: ok}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// dying is an env whose server exits with code 23 after some runs.
func dying(after int) *fakeEnv {
	return &fakeEnv{f: func(_ context.Context, n int, _ abi.EnvRequest) (*abi.Episode, error) {
		if n > after {
			return nil, exitedError()
		}
		return episode("x"), nil
	}}
}

func TestBuild_Warm(t *testing.T) {
	needBuild(t)
	dir := filepath.Join(hosttest.Root(t), "plugins/arith")
	b := &Builder{CacheDir: filepath.Join(t.TempDir(), "cache")}
	first, err := b.Build(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.Cached {
		t.Error("the first build came from a cache")
	}
	second, err := b.Build(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Cached || second.SHA256 != first.SHA256 || second.Sources != first.Sources {
		t.Errorf("second build: cached %v, sha256 %s want %s", second.Cached, second.SHA256, first.SHA256)
	}
	t.Logf("cold %v, warm %v", first.Took.Round(time.Millisecond), second.Took.Round(time.Millisecond))
}
