package codec_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/wevalr/wevalr/plugins/abi"
	. "github.com/wevalr/wevalr/plugins/sdk/codec"
)

func anything() map[string]any {
	return map[string]any{
		"nil": nil, "yes": true, "no": false, "text": strings.Repeat("ü", 300), "empty": "", "bytes": []byte{1, 2},
		"ints": []any{int64(0), int64(127), int64(128), int64(-1), int64(-33), int64(math.MinInt8), int64(math.MinInt16), int64(math.MinInt32), int64(math.MinInt64), int64(255), int64(65536), int64(math.MaxInt64)},
		"big":  uint64(math.MaxUint64), "float": 0.1, "map": map[string]any{"k": []any{map[string]any{}}},
	}
}

func task() abi.Task {
	return abi.Task{Key: "k", Data: anything(), Target: "t", Choices: []string{"a", ""}, Cluster: "c", Group: "g", Metadata: anything()}
}

func score() abi.Score {
	return abi.Score{Name: "n", Value: new(0.5), Label: "l", Explanation: "e", Answer: "a", Metadata: anything()}
}

func episode() abi.Episode {
	calls := []abi.ToolCall{{ID: "i", Name: "n", Arguments: "{}"}}
	e := abi.Episode{
		Completion: "c", StopCondition: "s", Info: anything(), Timing: anything(), ToolCalls: calls,
		Messages: []abi.Message{{Role: "r", Content: "c", Reasoning: "x", Name: "n", ToolCallID: "t", ToolCalls: calls}, {Role: "user"}},
		Errors:   []abi.TraceError{{Type: "t", Message: "m", StatusCode: 429}, {}},
		Rewards:  map[string]*abi.Reward{"a": {Score: 1, Weight: 0.5}, "b": nil},
		Metrics:  map[string]*float64{"a": new(1.5), "b": nil},
		Usage:    &abi.Usage{InputTokens: 1 << 40, OutputTokens: 2, Cost: new(0.01)},
		Tokens:   []abi.NodeTokens{{IDs: []int64{1, 2}, Mask: []bool{true, false}, Logprobs: []float64{-0.5}}},
	}
	inner := e
	e.Traces = []abi.Episode{inner, {}}
	return e
}

// same checks one type: our bytes read by us and by the host's library, the library's read by us.
func same[T any](t *testing.T, v T, write func(*Writer, T), read func(*Reader) T) {
	t.Helper()
	w := &Writer{}
	write(w, v)
	if w.Err != nil {
		t.Fatalf("%T: %v", v, w.Err)
	}
	r := NewReader(w.B)
	if got := read(r); r.End() != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("%T: got %+v, %v\nwant %+v", v, got, r.Err(), v)
	}
	var theirs T
	if err := msgpack.Unmarshal(w.B, &theirs); err != nil || !equalJSON(theirs, v) {
		t.Errorf("%T: the library reads %+v, %v\nwant %+v", v, theirs, err, v)
	}
	b, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	r = NewReader(b)
	if got := read(r); r.End() != nil || !equalJSON(got, v) {
		t.Errorf("%T: of the library's bytes got %+v, %v\nwant %+v", v, got, r.Err(), v)
	}
	for i := range w.B { // cut short: an error, no panic, wherever
		r := NewReader(w.B[:i])
		if read(r); r.End() == nil {
			t.Errorf("%T: the first %d of %d bytes: got no error", v, i, len(w.B))
		}
	}
	again := &Writer{}
	if write(again, v); !bytes.Equal(again.B, w.B) {
		t.Errorf("%T: two writes differ", v)
	}
}

func equalJSON(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

func TestRoundTrip(t *testing.T) {
	facts := &abi.ServerFacts{Generation: 2, Code: new(int64(0)), UptimeS: 1.5, Log: "l", Tail: []string{"x"}}
	same(t, task(), WriteTask, ReadTask)
	same(t, score(), WriteScore, ReadScore)
	same(t, abi.Score{}, WriteScore, ReadScore)
	same(t, episode(), WriteEpisode, ReadEpisode)
	same(t, abi.Episode{}, WriteEpisode, ReadEpisode)
	same(t, abi.Error{Code: "c", Message: "m", Retryable: true, Data: anything()}, WriteError, ReadError)
	same(t, abi.InitRequest{Options: anything(), Host: abi.HostInfo{Name: "n", Version: "v", ABIMajor: 1, ABIMinor: 2}}, WriteInit, ReadInit)
	same(t, abi.InitResponse{Tasks: new(int64(0))}, WriteInitResponse, ReadInitResponse)
	same(t, abi.TasksRequest{Cursor: "c", Limit: 5}, WriteTasks, ReadTasks)
	same(t, abi.TasksResponse{Tasks: []abi.Task{task()}, Next: "n"}, WriteTasksResponse, ReadTasksResponse)
	same(t, abi.RolloutRequest{Task: task(), Index: 3, Seed: -1}, WriteRollout, ReadRollout)
	same(t, abi.RolloutResponse{Episodes: []int64{1, 2}, Selected: 1, Scores: []abi.Score{score()}}, WriteRolloutResponse, ReadRolloutResponse)
	same(t, abi.ScoreGroupRequest{Scorer: "s", Task: task(), Episodes: []abi.Episode{episode(), {}}, Seed: 9}, WriteScoreGroupRequest, ReadScoreRequest)
	same(t, abi.ScoreResponse{Scores: []abi.Score{score(), {}}}, WriteScoreResponse, ReadScoreResponse)
	same(t, abi.EnvRequest{TaskData: anything(), Sampling: anything()}, WriteEnvRequest, ReadEnvRequest)
	same(t, abi.EnvReply{Episode: new(episode())}, WriteEnvReply, ReadEnvReply)
	same(t, abi.EnvReply{Err: &abi.EnvError{Status: abi.ServerExited, Source: "s", Kind: "k", Message: "m", Server: facts}}, WriteEnvReply, ReadEnvReply)
	same(t, abi.EnvReply{Err: &abi.EnvError{Status: abi.PeerFailed, Server: &abi.ServerFacts{Signal: "SIGKILL"}}}, WriteEnvReply, ReadEnvReply)
}

func TestReadScoreRequest_OneEpisode(t *testing.T) {
	w := &Writer{}
	WriteScoreRequest(w, abi.ScoreRequest{Scorer: "s", Task: task(), Episode: episode(), Seed: 4})
	r := NewReader(w.B)
	got := ReadScoreRequest(r)
	want := abi.ScoreGroupRequest{Scorer: "s", Task: task(), Episodes: []abi.Episode{episode()}, Seed: 4}
	if r.End() != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, r.Err())
	}
}

// What a newer host may do: fields that we do not know, other kinds of number, nil.
func TestReader_Lenient(t *testing.T) {
	b, err := msgpack.Marshal(map[string]any{
		"grease": []any{map[string]any{"a": []byte("x")}, 1.5, nil},
		"value":  int8(1), "label": nil, "name": []byte("n"), "metadata": map[int]any{-3: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(b)
	got := ReadScore(r)
	if want := (abi.Score{Name: "n", Value: new(1.0), Metadata: map[string]any{"-3": int64(1)}}); r.End() != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, r.Err())
	}
	for _, c := range []struct {
		v    any
		want int64
		ok   bool
	}{{5.0, 5, true}, {float32(-2), -2, true}, {nil, 0, true}, {5.5, 0, false}, {1e300, 0, false}, {math.NaN(), 0, false}, {uint64(math.MaxUint64), 0, false}, {"5", 0, false}} {
		b, _ := msgpack.Marshal(c.v)
		r := NewReader(b)
		if got := r.Int(); got != c.want || (r.End() == nil) != c.ok {
			t.Errorf("%v: got %d, %v", c.v, got, r.Err())
		}
	}
}

func TestReader_Hostile(t *testing.T) {
	deep := append(bytes.Repeat([]byte{0x91}, 100_000), 0xc0)
	for name, b := range map[string][]byte{
		"empty": {}, "deep": deep, "array of 4 G": {0xdd, 0xff, 0xff, 0xff, 0xff}, "map of 4 G": {0xdf, 0xff, 0xff, 0xff, 0xff},
		"string of 4 G": {0xdb, 0xff, 0xff, 0xff, 0xff}, "reserved": {0xc1}, "tail": {0xc0, 0xc0}, "ext": {0xc9, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		r := NewReader(b)
		if r.Any(); r.End() == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	r := NewReader(deep)
	if r.Skip(); r.End() != nil {
		t.Errorf("skipping what is deep: got %v", r.Err())
	}
}

func TestWriter_Errors(t *testing.T) {
	loop := map[string]any{}
	loop["loop"] = loop
	for _, v := range []any{struct{}{}, make(chan int), loop} {
		w := &Writer{}
		if w.Any(v); w.Err == nil {
			t.Errorf("%T: got no error", v)
		}
	}
}

// Any is what the host's library reads, and its encoding comes back to the same value.
func FuzzReader(f *testing.F) {
	w := &Writer{}
	WriteEpisode(w, episode())
	f.Add(w.B)
	f.Add([]byte{0x82, 0xa1, 'a', 0xd6, 1, 0, 0, 0, 0, 1, 0xc7, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		v := r.Any()
		skip := NewReader(b)
		if skip.Skip(); r.Err() == nil && (skip.End() == nil) != (r.End() == nil) {
			t.Fatalf("Any: %v, Skip: %v", r.Err(), skip.Err())
		}
		ReadEpisode(NewReader(b))
		ReadScoreRequest(NewReader(b))
		if r.End() != nil {
			return
		}
		w := &Writer{}
		if w.Any(v); w.Err != nil {
			t.Fatalf("write: %v", w.Err)
		}
		again := NewReader(w.B)
		if got := again.Any(); again.End() != nil || !bytes.Equal(encode(got), w.B) {
			t.Fatalf("got %v, %v; want %v", got, again.Err(), v)
		}
	})
}

func encode(v any) []byte {
	w := &Writer{}
	w.Any(v)
	return w.B
}

func BenchmarkReadEpisode(b *testing.B) {
	w := &Writer{}
	WriteEpisode(w, abi.Episode{Completion: strings.Repeat("word ", 400), Messages: []abi.Message{{Role: "user", Content: strings.Repeat("word ", 400)}}})
	var ours, theirs testing.BenchmarkResult
	b.ReportAllocs()
	for b.Loop() {
		ReadEpisode(NewReader(w.B))
	}
	ours = testing.BenchmarkResult{N: b.N, T: b.Elapsed()}
	theirs = testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			var e abi.Episode
			_ = msgpack.Unmarshal(w.B, &e)
		}
	})
	b.ReportMetric(float64(theirs.NsPerOp())/float64(ours.NsPerOp()), "times-faster-than-reflection")
}
