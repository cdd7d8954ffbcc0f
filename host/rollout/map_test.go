package rollout

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

// The mapping of failures to ABI statuses is total: every row of the table of kinds stands here.
func TestEnvError_TotalOverKinds(t *testing.T) {
	want := map[string]abi.Status{
		"Model/rate_limited": abi.PeerFailed, "Model/unavailable": abi.PeerFailed, "Model/rejected": abi.PeerFailed,
		"Server/task_error": abi.PeerFailed, "Server/harness_error": abi.PeerFailed, "Server/sandbox_error": abi.PeerFailed,
		"Server/toolset_error": abi.PeerFailed, "Server/interception_error": abi.PeerFailed, "Server/env_error": abi.PeerFailed,
		"Server/setup_timeout": abi.PeerFailed, "Server/finalize_timeout": abi.PeerFailed, "Server/scoring_timeout": abi.PeerFailed,
		"Server/refused": abi.PeerFailed, "Server/peer_error": abi.PeerFailed, "Server/not_ready": abi.PeerFailed,
		"Server/exited": abi.ServerExited, "Server/connection_lost": abi.ConnectionLost, "Server/worker_lost": abi.WorkerLost,
		"Server/stalled": abi.Stalled, "Server/protocol": abi.Protocol, "Server/too_large": abi.TooLarge,
		"Plugin/trap": abi.Internal, "Plugin/exit": abi.Internal, "Plugin/fuel": abi.Internal, "Plugin/memory": abi.Internal,
		"Plugin/deadline": abi.Internal, "Plugin/response": abi.Internal, "Plugin/abi": abi.Internal,
		"Host/disk": abi.Internal, "Host/internal": abi.Internal,
		"Cancelled/caller": abi.Cancelled, "Cancelled/drain": abi.Cancelled, "Cancelled/fail_fast": abi.Cancelled,
	}
	src, err := os.ReadFile(filepath.Join(hosttest.Root(t), "host/failure/kinds.go"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`\{(\w+), "(\w+)", (?:true|false)\}`).FindAllStringSubmatch(string(src), -1)
	if len(rows) < 30 {
		t.Fatalf("got %d rows of the table of kinds", len(rows))
	}
	sources := map[string]failure.Source{
		"Model": failure.Model, "Server": failure.Server, "Plugin": failure.Plugin, "Host": failure.Host,
		"Cancelled": failure.Cancelled, "Config": failure.Config,
	}
	for _, row := range rows {
		name := row[1] + "/" + row[2]
		status, ok := want[name]
		f := failure.New(sources[row[1]], row[2], "why")
		if got := envError(f); !ok || got.Status != status || got.Kind != row[2] || got.Source != string(f.Source) || got.Message != "why" {
			t.Errorf("%s: got %+v, want %v (in the test's table: %v)", name, got, status, ok)
		}
		if got, ended := serverEnded(f), slices.Contains([]string{"exited", "connection_lost", "worker_lost", "stalled"}, row[2]); got != ended {
			t.Errorf("%s: ended %v, want %v", name, got, ended)
		}
	}
	if got := envError(failure.New(failure.Config, "anything", "")); got.Status != abi.Invalid {
		t.Errorf("config: got %v", got.Status)
	}
}

// A guest gets the facts of a death, and no path of this machine.
func TestEnvError_Facts(t *testing.T) {
	code := 23
	f := failure.New(failure.Server, "exited", "bye")
	f.Server = &failure.ServerFacts{Attempt: 1, Instance: 2, Generation: 3, PID: 4, Code: &code, UptimeS: 5, Log: "logs/x", Tail: []string{"l"}}
	got := envError(f)
	want := &abi.ServerFacts{Generation: 3, Code: got.Server.Code, UptimeS: 5, Log: "logs/x", Tail: []string{"l"}}
	if !reflect.DeepEqual(got.Server, want) || *got.Server.Code != 23 {
		t.Errorf("got %+v", got.Server)
	}
	f = failure.New(failure.Server, "connection_lost", "read unix @->/run/user/0/x: EOF")
	f.Server = &failure.ServerFacts{Generation: 1, UptimeS: 2, Signal: 9, SignalName: "killed"}
	if got := envError(f); got.Message != "env-server (generation 1): connection lost after 2.0 s" || got.Server.Signal != "killed" || got.Server.Code != nil {
		t.Errorf("got %+v, %+v", got, got.Server)
	}
}

// The seeds of runs on disk, as Python's hashlib gives them: a change here makes them other runs.
func TestSeed_Vectors(t *testing.T) {
	for _, c := range []struct {
		base  int64
		key   string
		index int
		want  int64
	}{
		{0, "test-0", 0, 707076767}, {0, "test-0", 1, 852390014}, {1, "test-0", 0, 79832456}, {-7, "a/b:c", 12, 1288204162},
	} {
		if got := Seed(c.base, c.key, c.index); got != c.want {
			t.Errorf("Seed(%d, %s, %d): got %d want %d", c.base, c.key, c.index, got, c.want)
		}
	}
}

// A seed has 31 bits, depends on nothing but its rollout (so a smaller -n or -r is a prefix), and the
// calls of a rollout differ.
func TestSeed_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64().Draw(t, "base")
		key := rapid.StringMatching(`[a-z0-9/-]{1,20}`).Draw(t, "key")
		seen := map[int64]bool{}
		for index := range 8 {
			s := Seed(base, key, index)
			if s < 0 || s > math.MaxInt32 || s != callSeed(base, key, index, 0) {
				t.Fatalf("got %d", s)
			}
			seen[s] = true
			seen[callSeed(base, key, index, 1)] = true
		}
		if len(seen) != 16 {
			t.Fatalf("got %d different seeds of 16", len(seen))
		}
	})
	if Seed(1, "1", 1) == Seed(11, "", 1) || callSeed(0, "k", 1, 11) == callSeed(0, "k", 11, 1) {
		t.Error("the parts run into each other")
	}
}

func TestTask_RoundTrip(t *testing.T) {
	in := &abi.Task{
		Key: "k", Target: int64(1 << 60), Choices: []string{"a"}, Cluster: "c", Group: "g",
		Data: map[string]any{
			"int": int64(-3), "big": uint64(math.MaxUint64), "float": 1.0, "small": 1e-300, "large": 1e300, "half": 0.5,
			"e15": 1e15, "whole": 123456789012345680.0, "text": "<&>\u2028", "nil": nil, "yes": true,
			"list": []any{int64(1), 2.0, "3", []any{}, map[string]any{"x": int64(9007199254740993)}}, "map": map[string]any{},
		},
		Metadata: map[string]any{"n": int64(1), "zero": 0.0},
	}
	line, err := EncodeTask(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := DecodeTask(line)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("got %#v\nwant %#v", out, in)
	}
	again, err := EncodeTask(out)
	if err != nil || string(again) != string(line) {
		t.Errorf("got %s\nwant %s (%v)", again, line, err)
	}
	if _, err := EncodeTask(&abi.Task{Key: "nan", Data: map[string]any{"x": math.NaN()}}); err == nil {
		t.Error("NaN: got no error")
	}
	if _, err := DecodeTask([]byte(`{"key": 1}`)); err == nil {
		t.Error("a key that is no text: got no error")
	}
}

func TestTask_RoundTripProperty(t *testing.T) {
	leaf := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(v int64) any { return v }),
		rapid.Map(rapid.Float64(), func(v float64) any { return v }),
		rapid.Map(rapid.String(), func(v string) any { return v }),
		rapid.Just[any](nil),
	)
	rapid.Check(t, func(t *rapid.T) {
		in := &abi.Task{Key: "k", Data: map[string]any{"l": rapid.SliceOfN(leaf, 1, 5).Draw(t, "list"), "v": leaf.Draw(t, "leaf")}}
		line, err := EncodeTask(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := DecodeTask(line)
		if err != nil || !reflect.DeepEqual(in, out) {
			t.Fatalf("got %#v, %v\nwant %#v", out, err, in)
		}
	})
}

func TestRequest_Prompts(t *testing.T) {
	list := func(content any) []any {
		return []any{map[string]any{"role": "user", "content": "first"}, map[string]any{"role": "assistant", "content": "a"}, map[string]any{"role": "user", "content": content, "extra": 1}, map[string]any{"role": "assistant", "content": "b"}}
	}
	for name, c := range map[string]struct {
		r    Request
		data map[string]any
		want map[string]any // nil: config/prompt
	}{
		"none":     {Request{}, map[string]any{"x": 1}, map[string]any{"x": 1}},
		"system":   {Request{System: "s"}, map[string]any{"prompt": "p", "system_prompt": "own"}, map[string]any{"prompt": "p", "system_prompt": "s"}},
		"text":     {Request{Template: "<{{prompt}}|{{prompt}}>"}, map[string]any{"prompt": "p{{prompt}}"}, map[string]any{"prompt": "<p{{prompt}}|p{{prompt}}>"}},
		"messages": {Request{Template: "<{{prompt}}>"}, map[string]any{"prompt": list("last")}, map[string]any{"prompt": list("<last>")}},
		"parts":    {Request{Template: "<{{prompt}}>"}, map[string]any{"prompt": list([]any{})}, nil},
		"no user":  {Request{Template: "<{{prompt}}>"}, map[string]any{"prompt": []any{}}, nil},
		"no text":  {Request{Template: "<{{prompt}}>"}, map[string]any{"x": 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := json.Marshal(c.data)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.r.build(c.data, origin{key: "k"}, nil)
			if c.want == nil {
				if f := failure.Of(err); err == nil || f.Source != failure.Config || f.Kind != "prompt" {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got.TaskData, c.want) {
				t.Errorf("got %v, %v\nwant %v", got, err, c.want)
			}
			if after, _ := json.Marshal(c.data); string(after) != string(before) {
				t.Errorf("the task was changed: %s", after)
			}
		})
	}
}

func TestRequest_SeedOnlyWhereAsked(t *testing.T) {
	base := int64(5)
	r := Request{TaskSeed: 1, Sampling: map[string]any{"temperature": 1.0}}
	q, err := r.build(map[string]any{}, origin{key: "k", index: 2, try: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := q.Sampling["seed"]; there || *q.Wevalr != (wire.Tag{Key: "k", Index: 2, Try: 3, Seed: Seed(1, "k", 2)}) {
		t.Errorf("got %v, %+v", q.Sampling, q.Wevalr)
	}
	r.SamplingSeed = &base
	q, err = r.build(map[string]any{}, origin{key: "k", index: 2, try: 3, call: 1}, map[string]any{"temperature": 0.0})
	if err != nil {
		t.Fatal(err)
	}
	if want := callSeed(5, "k", 2, 1); q.Sampling["seed"] != want || q.Wevalr.Seed != want || q.Sampling["temperature"] != 0.0 {
		t.Errorf("got %v, %+v, want seed %d", q.Sampling, q.Wevalr, want)
	}
	if len(r.Sampling) != 1 || r.Sampling["temperature"] != 1.0 {
		t.Errorf("the eval's sampling was changed: %v", r.Sampling)
	}
}
