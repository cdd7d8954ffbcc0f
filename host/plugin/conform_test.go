package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/plugins/abi"
)

// TestConform runs the conformance guest of the Go SDK through every part of the ABI.
func TestConform(t *testing.T) {
	needBuild(t)
	dataset := t.TempDir()
	if err := os.WriteFile(filepath.Join(dataset, "hello.txt"), []byte("hi"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := load(t, newEngine(t), Spec{
		Source: filepath.Join(hosttest.Root(t), "testplugins/conform-go"), Options: map[string]any{"greeting": "good day"},
		Grants: Grants{Env: &EnvGrant{Sampling: []string{"temperature"}}, FS: map[string]string{"dataset": dataset}},
	})
	if tasks := allTasks(t, p); len(tasks) != 3 || fmt.Sprint(tasks[2].Data["nested"]) != "map[list:[1 2.5 x <nil> true]]" {
		t.Errorf("tasks = %+v", tasks)
	}
	t.Run("misbehave", func(t *testing.T) { conformMisbehave(t, p) })
	t.Run("drive", func(t *testing.T) { conformDrive(t, p) })
	t.Run("world", func(t *testing.T) { conformWorld(t, p) })
	t.Run("group", func(t *testing.T) {
		res, err := p.ScoreGroup(context.Background(), abi.ScoreGroupRequest{Scorer: "spread", Episodes: []abi.Episode{*episode("abc"), *episode("a")}})
		if err != nil || *res.Scores[0].Value != 2 {
			t.Errorf("got %+v, %v, want 2", res, err)
		}
	})
	t.Run("length", func(t *testing.T) {
		res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "length", Seed: 9, Episode: abi.Episode{
			Completion: "one two", Messages: []abi.Message{{Role: "user"}}, StopCondition: "done",
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Scores) != 3 || *res.Scores[1].Value != 2 || res.Scores[2].Value != nil {
			t.Errorf("got %+v", res.Scores)
		}
		if got := fmt.Sprint(res.Scores[0].Metadata); got != "map[errors:0 info:0 key: messages:1 seed:9 stop_condition:done]" {
			t.Errorf("metadata %s", got)
		}
	})
}

func conformMisbehave(t *testing.T, p *Plugin) {
	t.Helper()
	for completion, want := range map[string]string{
		"panic": "", "error": "own_code", "plain error": "", "none": "response", "twice": "response", "range": "response",
		"nan": "response", "inf": "response", "huge": "response", "": "ok",
	} {
		_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "misbehave", Episode: *episode(completion)})
		if want == "ok" {
			if err != nil {
				t.Errorf("%q: %v", completion, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q: no error", completion)
			continue
		}
		if kind := failure.Of(err).Kind; want != "" && kind != want {
			t.Errorf("%q: got %s (%v), want %s", completion, kind, err, want)
		}
	}
	_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "misbehave", Episode: *episode("panic")})
	if err == nil || !strings.Contains(err.Error(), "a panic of the plugin") {
		t.Errorf("got %v, want the panic's text", err)
	}
}

func conformDrive(t *testing.T, p *Plugin) {
	t.Helper()
	// A cancelled call ends as such; the other ones answer with their number.
	f := func(_ context.Context, n int, _ abi.EnvRequest) (*abi.Episode, error) {
		return episode(fmt.Sprint(n)), nil
	}
	cancelled := func(ctx context.Context, n int, req abi.EnvRequest) (*abi.Episode, error) {
		if n == 1 {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return f(ctx, n, req)
	}
	for _, tc := range []struct {
		drive    string
		episodes int // 0 = an error
		f        func(context.Context, int, abi.EnvRequest) (*abi.Episode, error)
	}{
		{"run", 1, f},
		{"chain", 2, f},
		{"parallel", 8, f},
		{"await", 3, f},
		{"cancel", 1, cancelled},
		{"take", 1, f},
		{"sampling", 1, f},
		{"ungranted", 0, f},
		{"close", 0, f},
		{"nonsense", 0, f},
	} {
		e := &fakeEnv{f: tc.f}
		res, err := p.Rollout(context.Background(), abi.RolloutRequest{
			Task: abi.Task{Key: "k", Data: map[string]any{"drive": tc.drive, "prompt": "p"}},
		}, e)
		if len(res.Refs) != tc.episodes || (err == nil) != (tc.episodes > 0) {
			t.Errorf("%s: got %+v, %v, want %d episodes", tc.drive, res, err, tc.episodes)
		}
		if e.running != 0 {
			t.Errorf("%s: %d env calls still run", tc.drive, e.running)
		}
	}
}

func conformWorld(t *testing.T, p *Plugin) {
	t.Helper()
	see := func(seed int64) string {
		res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "world", Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(res.Scores[0].Metadata)
	}
	first := see(1)
	if again := see(1); again != first {
		t.Errorf("the same call saw another world:\n%s\n%s", first, again)
	}
	if other := see(2); other == first {
		t.Error("another seed gives the same random numbers")
	}
	for _, want := range []string{"greeting:good day", "dataset:hi", "slept:true", "now:1640998800", "asset:"} {
		if !strings.Contains(first, want) {
			t.Errorf("%s is missing in %s", want, first)
		}
	}
}
