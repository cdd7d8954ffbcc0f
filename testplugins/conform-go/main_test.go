package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func drive(name string) abi.RolloutRequest {
	return abi.RolloutRequest{Task: abi.Task{Key: "k", Data: map[string]any{"prompt": "p", "drive": name}}}
}

// echo answers the prompt and "+".
func echo(_ context.Context, req abi.EnvRequest) (*abi.Episode, error) {
	prompt, _ := req.TaskData["prompt"].(string)
	return &abi.Episode{Completion: prompt + "+"}, nil
}

func TestRollout_Drives(t *testing.T) {
	for name, want := range map[string][]string{
		"run": {"p+"}, "chain": {"p+", "p++"}, "await": {"p+", "p+", "p+"}, "take": {"p+"}, "sampling": {"p+"},
		"parallel": {"p+", "p++", "p+", "p++", "p+", "p++", "p+", "p++"},
	} {
		p := sdktest.New(t, sdktest.Host{Env: echo, Sampling: []string{"temperature"}})
		got, err := p.Rollout(drive(name))
		var texts []string
		for _, ep := range got.Episodes {
			texts = append(texts, ep.Completion)
		}
		if err != nil || strings.Join(texts, " ") != strings.Join(want, " ") || got.Selected != len(want)-1 {
			t.Errorf("%s: got %q selected %d, %v; want %q", name, texts, got.Selected, err, want)
		}
	}
}

// Two chains' second calls begin before any other first call has ended: nobody waits for a neighbour.
func TestRollout_GoroutinesOverlap(t *testing.T) {
	second := make(chan struct{}, 4)
	p := sdktest.New(t, sdktest.Host{Env: func(ctx context.Context, req abi.EnvRequest) (*abi.Episode, error) {
		if req.TaskData["prompt"] == "p" {
			return &abi.Episode{Completion: "again"}, nil
		}
		second <- struct{}{}
		for len(second) < 4 { // all four are in flight together
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			default:
			}
		}
		return &abi.Episode{}, nil
	}})
	if got, err := p.Rollout(drive("parallel")); err != nil || len(got.Episodes) != 8 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRollout_Cancel(t *testing.T) {
	first := true
	p := sdktest.New(t, sdktest.Host{Env: func(ctx context.Context, req abi.EnvRequest) (*abi.Episode, error) {
		if first {
			first = false
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return &abi.Episode{Completion: "done"}, nil
	}})
	if got, err := p.Rollout(drive("cancel")); err != nil || got.Episodes[0].Completion != "done" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRollout_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		drive string
		env   func(context.Context, abi.EnvRequest) (*abi.Episode, error)
		code  string
	}{
		"no grant":  {"run", nil, "denied"},
		"sampling":  {"ungranted", echo, "denied"},
		"bad drive": {"?", echo, "bad_drive"},
		"exited":    {"run", func(context.Context, abi.EnvRequest) (*abi.Episode, error) { return nil, sdktest.ServerExited(0) }, "server_exited"},
		"peer":      {"chain", func(context.Context, abi.EnvRequest) (*abi.Episode, error) { return nil, sdktest.PeerError("no") }, "peer_error"},
		"internal":  {"run", func(context.Context, abi.EnvRequest) (*abi.Episode, error) { return nil, errors.New("x") }, "internal"},
		"parallel":  {"parallel", func(context.Context, abi.EnvRequest) (*abi.Episode, error) { return nil, sdktest.PeerError("no") }, "peer_error"},
	} {
		_, err := sdktest.New(t, sdktest.Host{Env: c.env}).Rollout(drive(c.drive))
		var own *sdk.Error
		if !errors.As(err, &own) || own.Code != c.code {
			t.Errorf("%s: got %v, want code %s", name, err, c.code)
		}
	}
}

func TestScorers(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{
		Options:  map[string]any{"greeting": "hi"},
		Assets:   map[string][]byte{"data/asset.txt": []byte("an asset")},
		Datasets: map[string]fs.FS{"dataset": fstest.MapFS{"hello.txt": {Data: []byte("hello")}}},
	})
	tasks, err := p.Tasks(2)
	if err != nil || len(tasks) != 3 || tasks[2].Data["nested"].(map[string]any)["list"].([]any)[1] != 2.5 {
		t.Fatalf("tasks: got %+v, %v", tasks, err)
	}
	got, err := p.Score("length", tasks[0], abi.Episode{Completion: "two words", Messages: []abi.Message{{Role: "user"}}})
	if err != nil || len(got) != 3 || *got[0].Value != 9 || got[0].Metadata["messages"] != int64(1) || *got[1].Value != 2 || got[2].Value != nil {
		t.Errorf("length: got %+v, %v", got, err)
	}
	got, err = p.Score("world", tasks[0], abi.Episode{})
	if err != nil || got[0].Metadata["greeting"] != "hi" || got[0].Metadata["asset"] != "an asset" || got[0].Metadata["dataset"] != "hello" {
		t.Errorf("world: got %+v, %v", got, err)
	}
	if len(p.Logs()) != 1 || !strings.HasPrefix(p.Logs()[0], "world calls=") {
		t.Errorf("logs: got %q", p.Logs())
	}
	got, err = p.ScoreGroup("spread", tasks[0], []abi.Episode{{Completion: "a"}, {Completion: "abcd"}})
	if err != nil || *got[0].Value != 3 {
		t.Errorf("spread: got %+v, %v", got, err)
	}
	got, err = sdktest.New(t, sdktest.Host{}).Score("world", tasks[0], abi.Episode{})
	if err != nil || !strings.Contains(got[0].Metadata["asset"].(string), "not_found") || got[0].Metadata["dataset"] != "none" {
		t.Errorf("world, nothing granted: got %+v, %v", got, err)
	}
}

func TestScorers_Failures(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{Env: echo})
	for completion, code := range map[string]string{"error": "own_code", "plain error": "error", "env": "denied"} {
		_, err := p.Score("misbehave", abi.Task{}, abi.Episode{Completion: completion})
		var own *sdk.Error
		if !errors.As(err, &own) || own.Code != code {
			t.Errorf("%s: got %v, want code %s", completion, err, code)
		}
		if code == "own_code" && (!own.Retryable || own.Data["n"] != int64(1) || own.Message != "an error of the plugin") {
			t.Errorf("%s: got %+v", completion, own)
		}
	}
	for _, scorer := range []string{"", "spread", "none"} {
		if _, err := p.Score(scorer, abi.Task{}, abi.Episode{}); err == nil || err.(*sdk.Error).Code != "unsupported" {
			t.Errorf("scorer %q: got %v, want unsupported", scorer, err)
		}
	}
	defer func() {
		if v := recover(); v != "a panic of the plugin" || !strings.HasPrefix(p.Failed(), "a panic of the plugin\n\ngoroutine ") {
			t.Errorf("panic: got %v, told to the host %q", v, p.Failed())
		}
	}()
	p.Score("misbehave", abi.Task{}, abi.Episode{Completion: "panic"})
}
