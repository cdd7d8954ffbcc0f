package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

func TestTasks(t *testing.T) {
	for _, c := range []struct {
		options map[string]any
		n, max  int64
	}{
		{nil, 50, 99},
		{map[string]any{"tasks": int64(200), "max": int64(9)}, 200, 9},
		{map[string]any{"tasks": int64(0)}, 0, 99},
	} {
		p := sdktest.New(t, sdktest.Host{Options: c.options})
		if n, err := p.Init(); n != c.n || err != nil {
			t.Errorf("%v: got %d tasks, %v; want %d", c.options, n, err, c.n)
		}
		list, err := p.Tasks(7)
		if err != nil || int64(len(list)) != c.n {
			t.Fatalf("%v: got %d tasks, %v", c.options, len(list), err)
		}
		for _, task := range list {
			prompt, _ := task.Data["prompt"].(string)
			var a, b int64
			terms := strings.Split(strings.TrimSuffix(strings.TrimPrefix(prompt, "What is "), "?"), " + ")
			if len(terms) == 2 {
				a, _ = strconv.ParseInt(terms[0], 10, 64)
				b, _ = strconv.ParseInt(terms[1], 10, 64)
			}
			if prompt != "What is "+strconv.FormatInt(a, 10)+" + "+strconv.FormatInt(b, 10)+"?" || a > c.max || b > c.max || a < 0 || b < 0 {
				t.Errorf("prompt: got %q", prompt)
			}
			if task.Target != strconv.FormatInt(a+b, 10) || len(task.Data) != 1 {
				t.Errorf("%s: got target %v and data %v", task.Key, task.Target, task.Data)
			}
		}
	}
}

// A larger set begins with a smaller one, and no task depends on the page that it came in.
func TestTasks_Prefix(t *testing.T) {
	small, err1 := sdktest.New(t, sdktest.Host{}).Tasks(50)
	large, err2 := sdktest.New(t, sdktest.Host{Options: map[string]any{"tasks": int64(80)}}).Tasks(3)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	different := map[any]bool{}
	for i := range small {
		if small[i].Key != large[i].Key || small[i].Data["prompt"] != large[i].Data["prompt"] {
			t.Errorf("task %d: got %v and %v", i, small[i], large[i])
		}
		different[small[i].Data["prompt"]] = true
	}
	if len(different) < 45 {
		t.Errorf("got %d different prompts of %d", len(different), len(small))
	}
}

func TestInit_BadOptions(t *testing.T) {
	for _, o := range []map[string]any{{"tasks": int64(-1)}, {"max": int64(0)}, {"max": "9"}, {"tasks": 1.5}} {
		if _, err := sdktest.New(t, sdktest.Host{Options: o}).Init(); err == nil {
			t.Errorf("%v: got no error", o)
		}
	}
}

func TestCorrect(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{})
	for _, c := range []struct {
		completion, target, answer string
		value                      float64
	}{
		{"42", "42", "42", 1},
		{"12 + 30 = 42.", "42", "42", 1},
		{"12 + 30 = 43", "42", "43", 0},
		{"42.0", "42", "42", 1},
		{"42.50", "42", "42.5", 0},
		{"It is 1,042!", "1042", "1042", 1},
		{"042", "42", "42", 1},
		{"1,2", "2", "2", 1},
		{"40-42", "42", "42", 1},
		{"x-42", "42", "42", 1},
		{"It is -42", "-42", "-42", 1},
		{"It is \u221242", "-42", "-42", 1},
		{"-0", "0", "0", 1},
		{"**42**", "42", "42", 1},
		{"", "42", "", 0},
		{"no idea", "42", "", 0},
	} {
		got, err := p.Score("correct", abi.Task{Key: "k", Target: c.target}, abi.Episode{Completion: c.completion})
		if err != nil || len(got) != 1 || *got[0].Value != c.value || got[0].Answer != c.answer {
			t.Errorf("%q: got %+v, %v; want %v %q", c.completion, got, err, c.value, c.answer)
		}
	}
	if _, err := p.Score("correct", abi.Task{Key: "k"}, abi.Episode{}); err == nil {
		t.Error("no target: got no error")
	}
	if _, err := p.Score("other", abi.Task{Key: "k"}, abi.Episode{}); err == nil {
		t.Error("unknown scorer: got no error")
	}
}
