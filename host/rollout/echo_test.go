package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
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
		"bytes":       {map[string]any{"a": []byte("x")}, map[string]any{"a": []byte("x")}, ""},
		"dropped":     {map[string]any{"answer": "42"}, map[string]any{"idx": nil}, `field answer: sent "42", the server has nothing`},
		"changed":     {map[string]any{"n": "3"}, map[string]any{"n": 3}, `field n: sent "3", the server has 3`},
		"shorter":     {map[string]any{"l": []any{1, 2}}, map[string]any{"l": []any{1}}, `field l: sent [1,2], the server has [1]`},
		"inside":      {map[string]any{"l": []any{map[string]any{"role": "user", "content": "x"}}}, map[string]any{"l": []any{map[string]any{"role": "user", "content": "y"}}}, `field l[0].content: sent "x", the server has "y"`},
		"field names": {map[string]any{"b": 1, "a": 1}, map[string]any{}, `field a: sent 1, the server has nothing; field b: sent 1, the server has nothing`},
		"other kind":  {map[string]any{"m": map[string]any{}}, map[string]any{"m": "x"}, `field m: sent {}, the server has "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{Spec: Spec{CheckEcho: true}}
			ep := &wire.Episode{OK: true, Task: wire.Task{Key: "k", Data: value(t, c.has)}, Traces: []wire.Trace{{OK: true}}}
			err := e.checkEcho(c.sent, ep)
			if c.want == "" {
				if err != nil || !e.echoed.Load() {
					t.Errorf("got %v, want none, and no other check", err)
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

func TestCheckEcho_WhatCannotBeChecked(t *testing.T) {
	sent := map[string]any{"a": 1}
	has := wire.Task{Data: value(t, map[string]any{})}
	for name, ep := range map[string]*wire.Episode{
		"no task":      {OK: true, Traces: []wire.Trace{{OK: true}}},
		"not finished": {Task: has, Traces: []wire.Trace{{Errors: []wire.Error{{Type: "TaskError"}}}}},
	} {
		e := &engine{Spec: Spec{CheckEcho: true}}
		if err := e.checkEcho(sent, ep); err != nil || e.echoed.Load() {
			t.Errorf("%s: got %v, checked %v", name, err, e.echoed.Load())
		}
	}
	ep := &wire.Episode{OK: true, Task: has, Traces: []wire.Trace{{OK: true}}}
	if err := (&engine{}).checkEcho(sent, ep); err != nil {
		t.Errorf("not asked for: got %v", err)
	}
	ep = &wire.Episode{OK: true, Traces: []wire.Trace{{OK: true, Task: has}}} // a trace's task will do
	if err := (&engine{Spec: Spec{CheckEcho: true}}).checkEcho(sent, ep); err == nil {
		t.Error("got no error")
	}
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
	s.CheckEcho, s.MaxConcurrent, s.Observer = true, 1, w
	got := run(t, s)
	wrong, ok := errors.AsType[*EchoError](got.err)
	if !ok || got.Stopped == nil || !strings.Contains(wrong.Error(), `task mismatch: field answer: sent "42", the server has nothing`) {
		t.Fatalf("got %v, stopped by %v", got.err, got.Stopped)
	}
	if f := failure.Of(got.err); f.Source != failure.Config || f.Kind != "task_mismatch" {
		t.Errorf("got %v", f)
	}
	if len(w.dispatched) > 3 {
		t.Errorf("got %d rollouts sent, want hardly more than one", len(w.dispatched))
	}
	if n := r.Counts(1); n.Completed != 0 || n.Errors != 1 || n.Owed != 30 {
		t.Errorf("got %+v", n)
	}
}

// A plugin's calls are checked too.
func TestEcho_OfADrivenRollout(t *testing.T) {
	p := load(t, bestOfN, withEnv("temperature"), nil)
	r := newRun(t)
	a := task("a", order{Drop: "answer"})
	a.Data["answer"] = "42"
	s := spec(r, spool(t, r, a), startServer(t, 1, 1))
	s.Driver, s.CheckEcho = p, true
	if got := run(t, s); !errors.As(got.err, new(*EchoError)) {
		t.Fatalf("got %v", got.err)
	}
	if f := byKey(t, r)["a"]; f.Outcome != failure.Errored || f.Failure.Kind != "task_mismatch" {
		t.Errorf("got %+v", f)
	}
}

func TestEchoError_Zero(t *testing.T) {
	if got := (&EchoError{}).Error(); got != "task mismatch" {
		t.Errorf("got %q", got)
	}
}
