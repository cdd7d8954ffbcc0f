package rollout

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/zmqio"
)

func value(t *testing.T, v any) wire.Value {
	t.Helper()
	out, err := wire.ValueOf(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCheckEcho(t *testing.T) {
	for name, c := range map[string]struct {
		sent, has map[string]any
		want      string // of the error, by "; "
	}{
		"equal":       {map[string]any{"a": 1, "b": "x", "c": []any{1, nil}}, map[string]any{"a": 1, "b": "x", "c": []any{1, nil}}, ""},
		"defaults":    {map[string]any{"a": 1, "m": map[string]any{"x": 1}}, map[string]any{"a": 1, "idx": nil, "skills": []any{}, "m": map[string]any{"x": 1, "y": 2}}, ""},
		"nil":         {map[string]any{"a": nil, "b": nil}, map[string]any{"b": 32}, ""},
		"number":      {map[string]any{"a": 1, "b": 2.0, "c": uint64(1 << 63)}, map[string]any{"a": 1.0, "b": 2, "c": float64(1 << 63)}, ""},
		"exact":       {map[string]any{"a": int64(1<<53 + 1), "b": int64(1<<53 + 1)}, map[string]any{"a": int64(1 << 53), "b": float64(1 << 53)}, `field a: sent 9007199254740993, the server has 9007199254740992; field b: sent 9007199254740993, the server has 9007199254740992`},
		"no number":   {map[string]any{"a": math.NaN(), "b": math.Inf(1)}, map[string]any{"a": nil}, ""}, // as JSON has it
		"bytes":       {map[string]any{"a": []byte("x")}, map[string]any{"a": []byte("x")}, ""},
		"dropped":     {map[string]any{"answer": "42"}, map[string]any{"idx": nil}, `field answer: sent "42", the server has nothing`},
		"changed":     {map[string]any{"n": "3"}, map[string]any{"n": 3}, `field n: sent "3", the server has 3`},
		"shorter":     {map[string]any{"l": []any{1, 2}}, map[string]any{"l": []any{1}}, `field l: sent [1,2], the server has [1]`},
		"inside":      {map[string]any{"l": []any{map[string]any{"role": "user", "content": "x"}}}, map[string]any{"l": []any{map[string]any{"role": "user", "content": "y"}}}, `field l[0].content: sent "x", the server has "y"`},
		"field names": {map[string]any{"b": 1, "a": 1}, map[string]any{}, `field a: sent 1, the server has nothing; field b: sent 1, the server has nothing`},
		"other kind":  {map[string]any{"m": map[string]any{}}, map[string]any{"m": "x"}, `field m: sent {}, the server has "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			e := holding()
			ep := &wire.Episode{OK: true, Task: wire.Task{Key: "k", Data: value(t, c.has)}, Traces: []wire.Trace{{OK: true}}}
			err := e.checkEcho(c.sent, ep)
			if free(e) != (c.want == "") {
				t.Errorf("the others are let go: %v", free(e))
			}
			if c.want == "" {
				if err != nil {
					t.Errorf("got %v, want none", err)
				}
				return
			}
			if err == nil {
				t.Fatal("got no error")
			}
			got := strings.ReplaceAll(strings.ReplaceAll(err.Error(), "task mismatch: ", ""), "\n", "; ")
			if got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestCheckEcho_Episodes(t *testing.T) {
	sent := map[string]any{"a": 1}
	wrong, right := wire.Task{Data: value(t, map[string]any{})}, wire.Task{Data: value(t, sent)}
	fine, failed := wire.Trace{OK: true}, wire.Trace{Errors: []wire.Error{{Type: "TaskError"}}}
	for _, c := range []struct {
		name      string
		ep        wire.Episode
		bad, free bool
	}{
		{"records no task", wire.Episode{OK: true, Traces: []wire.Trace{fine}}, false, true},
		{"fails with the right task", wire.Episode{Task: right, Traces: []wire.Trace{failed}}, false, true},
		{"fails with a wrong task", wire.Episode{Task: wrong, Traces: []wire.Trace{failed}}, true, false},
		{"a trace's task", wire.Episode{OK: true, Traces: []wire.Trace{{OK: true, Task: wrong}}}, true, false},
	} {
		e := holding()
		if err := e.checkEcho(sent, &c.ep); (err != nil) != c.bad || free(e) != c.free {
			t.Errorf("%s: got %v, the others are let go: %v", c.name, err, free(e))
		}
	}
	if err := (&engine{}).checkEcho(sent, &wire.Episode{OK: true, Task: wrong, Traces: []wire.Trace{fine}}); err != nil {
		t.Errorf("not asked for: got %v", err)
	}
}

// holding is an engine that sends one rollout of two until it knows that the server knows its tasks.
func holding() *engine {
	e := &engine{Spec: Spec{CheckEcho: true, MaxConcurrent: 2, Logger: slog.New(slog.DiscardHandler)}, slots: semaphore.NewWeighted(2)}
	e.holdBack()

	return e
}

func free(e *engine) bool {
	if !e.slots.TryAcquire(2) {
		return false
	}
	e.slots.Release(2)
	return true
}

// A server that drops a field ends the attempt after one rollout, which is an error and owed.
func TestEcho_EndsTheAttempt(t *testing.T) {
	r, w := newRun(t), newWatcher()
	var list []abi.Task
	for i := range 30 {
		list = append(list, task(fmt.Sprint("t", i), order{Drop: "answer"}))
		list[i].Data["answer"] = "42"
	}
	s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
	s.CheckEcho, s.MaxConcurrent, s.Observer = true, 16, w
	got := run(t, s)
	wrong, ok := errors.AsType[*EchoError](got.err)
	if !ok || got.Stopped == nil || !strings.Contains(wrong.Error(), `task mismatch: field answer: sent "42", the server has nothing`) {
		t.Fatalf("got %v, stopped by %v", got.err, got.Stopped)
	}
	if f := failure.Of(got.err); f.Source != failure.Config || f.Kind != "task_mismatch" {
		t.Errorf("got %v", f)
	}
	if len(w.dispatched) != 1 {
		t.Errorf("got %d rollouts sent, want one", len(w.dispatched))
	}
	if n := r.Counts(1); n.Completed != 0 || n.Errors != 1 || n.Owed != 30 {
		t.Errorf("got %+v", n)
	}
}

// One rollout is sent alone, and the others all at once when its task has been compared.
func TestEcho_ThenAllAtOnce(t *testing.T) {
	r := newRun(t)
	list := []abi.Task{task("t0", order{})}
	for i := range 8 {
		list = append(list, task(fmt.Sprint("t", i+1), order{Seen: 9}))
	}
	s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
	s.CheckEcho, s.MaxConcurrent = true, 8
	must(t, s)
	if n := r.Counts(1); n.Completed != 9 {
		t.Errorf("got %+v", n)
	}
}

// The first delta that shows the right task lets the others go: they need not wait for the rollout's end.
func TestEcho_InTheFirstDelta(t *testing.T) {
	for _, driver := range []*plugin.Plugin{nil, load(t, bestOfN, withEnv("temperature"), nil)} {
		r := newRun(t)
		var list []abi.Task
		for i := range 8 {
			list = append(list, task(fmt.Sprint("t", i), order{Shown: 8})) // ends when all have begun
		}
		s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
		s.CheckEcho, s.MaxConcurrent, s.Driver = true, 8, driver
		must(t, s)
		if n := r.Counts(1); n.Completed != 8 {
			t.Errorf("got %+v", n)
		}
	}
}

// A first delta with a wrong task lets nobody go.
func TestEcho_WrongInTheFirstDelta(t *testing.T) {
	sent := map[string]any{"a": 1}
	for _, c := range []struct {
		name string
		task wire.Task
		free bool
	}{
		{"right", wire.Task{Data: value(t, sent)}, true},
		{"wrong", wire.Task{Data: value(t, map[string]any{})}, false},
		{"none", wire.Task{}, false},
	} {
		e := holding()
		var p zmqio.Progress
		e.watchEcho(sent, &p)
		trace := &wire.Trace{ID: "t", Task: c.task}
		p.OnFirst(wire.Delta{Trace: "t", Open: trace, Set: trace}.Encode())
		if free(e) != c.free {
			t.Errorf("%s: the others are let go: %v", c.name, free(e))
		}
	}
}

// Every reply is compared, not the first one alone.
func TestEcho_OfALaterTask(t *testing.T) {
	r := newRun(t)
	list := []abi.Task{task("a", order{}), task("b", order{Drop: "answer"})}
	list[1].Data["answer"] = "42"
	s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
	s.CheckEcho = true
	if got := run(t, s); !errors.As(got.err, new(*EchoError)) {
		t.Errorf("got %v", got.err)
	}
	if n := r.Counts(1); n.Completed != 1 || n.Errors != 1 {
		t.Errorf("got %+v", n)
	}
}

// A plugin's calls are checked too.
func TestEcho_OfADrivenRollout(t *testing.T) {
	p := load(t, bestOfN, withEnv("temperature"), nil)
	r := newRun(t)
	var list []abi.Task
	for _, key := range []string{"a", "b", "c", "d"} {
		a := task(key, order{Drop: "answer"})
		a.Data["answer"] = "42"
		list = append(list, a)
	}
	s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
	s.Driver, s.CheckEcho = p, true
	if got := run(t, s); !errors.As(got.err, new(*EchoError)) {
		t.Fatalf("got %v", got.err)
	}
	wrong := 0
	for key, f := range byKey(t, r) {
		switch {
		case f.Outcome == failure.Errored && f.Failure.Kind == "task_mismatch":
			wrong++
		case f.Outcome != failure.Dropped:
			t.Errorf("%s: got %+v", key, f)
		}
	}
	if wrong != 1 {
		t.Errorf("got %d rollouts sent, want one", wrong)
	}
}

func TestEchoError_Zero(t *testing.T) {
	if got := (&EchoError{}).Error(); got != "task mismatch" {
		t.Errorf("got %q", got)
	}
}
