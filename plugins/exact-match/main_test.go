package main

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/internal/publicdata"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

func TestMatch(t *testing.T) {
	task := abi.Task{
		Key: "k", Target: "Paris", Choices: []string{"A", "B"},
		Data:     map[string]any{"answer": "forty two", "all": []any{"x", int64(7)}, "n": 2.5},
		Metadata: map[string]any{"deep": map[string]any{"list": []any{"zero", "one"}}},
	}
	for _, c := range []struct {
		options    map[string]any
		completion string
		value      float64
		answer     string
	}{
		{nil, "Paris", 1, "Paris"},
		{nil, "paris", 0, "paris"},
		{nil, " Paris", 0, " Paris"},
		{map[string]any{"ignore_case": true}, "PARIS", 1, "PARIS"},
		{map[string]any{"ignore_space": true}, " Paris\n", 1, " Paris\n"},
		{map[string]any{"ignore_punctuation": true}, "**Paris**!", 1, "**Paris**!"},
		{map[string]any{"ignore_punctuation": true, "ignore_space": true}, "- Paris.", 1, "- Paris."},
		{map[string]any{"expected": "data.answer"}, "forty two", 1, "forty two"},
		{map[string]any{"expected": "data.answer", "ignore_space": true}, "forty  two", 1, "forty  two"},
		{map[string]any{"expected": "data.answer", "ignore_space": true}, "fortytwo", 0, "fortytwo"},
		{map[string]any{"expected": "data.all"}, "7", 1, "7"},
		{map[string]any{"expected": "data.all"}, "8", 0, "8"},
		{map[string]any{"expected": "data.n"}, "2.5", 1, "2.5"},
		{map[string]any{"expected": "metadata.deep.list.1"}, "one", 1, "one"},
		{map[string]any{"expected": "choices.0"}, "A", 1, "A"},
		{map[string]any{"extract": `answer: (\w+)`}, "answer: Rome, no, answer: Paris", 1, "Paris"},
		{map[string]any{"extract": `answer: (\w+)`}, "answer: Paris, no, answer: Rome", 0, "Rome"},
		{map[string]any{"extract": `[A-Z]\w+`}, "It is Paris.", 1, "Paris"},
		{map[string]any{"extract": `x(y)?`}, "x", 0, ""},
		{map[string]any{"extract": `answer: (\w+)`}, "Paris", 0, ""},
	} {
		got, err := sdktest.New(t, sdktest.Host{Options: c.options}).Score("match", task, abi.Episode{Completion: c.completion})
		if err != nil || len(got) != 1 || *got[0].Value != c.value || got[0].Answer != c.answer {
			t.Errorf("%v %q: got %+v, %v; want %v %q", c.options, c.completion, got, err, c.value, c.answer)
		}
	}
}

func TestMatch_NothingExpected(t *testing.T) {
	for _, path := range []string{"target", "data.none", "data.answer.deeper", "metadata.list.9", "nowhere", ""} {
		task := abi.Task{Key: "k", Data: map[string]any{"answer": "a"}, Metadata: map[string]any{"list": []any{"x"}}}
		_, err := sdktest.New(t, sdktest.Host{Options: map[string]any{"expected": path}}).Score("match", task, abi.Episode{})
		if err == nil {
			t.Errorf("%q: got no error", path)
		}
	}
}

func TestInit_BadPattern(t *testing.T) {
	if _, err := sdktest.New(t, sdktest.Host{Options: map[string]any{"extract": "("}}).Init(); err == nil {
		t.Error("got no error")
	}
}

// BIG-bench-hard: the published verdicts, by options alone.
func TestMatch_BBH(t *testing.T) {
	dir := publicdata.Dir(t, "bbh")
	targets := map[string]string{}
	for _, r := range publicdata.Rows[row](t, filepath.Join(dir, "tasks.jsonl.gz")) {
		targets[key(r)] = r.Target
	}
	options := map[string]map[string]any{
		"direct": {"ignore_space": true},
		"cot":    {"extract": `.*he answer is (.*?)\.*(?:\n|$)`},
	}
	counts := map[string]int{}
	for _, r := range publicdata.Rows[row](t, filepath.Join(dir, "outputs.jsonl.gz")) {
		counts[r.Mode]++
		got, err := sdktest.New(t, sdktest.Host{Options: options[r.Mode]}).Score("match", abi.Task{Key: "k", Target: targets[key(r)]}, abi.Episode{Completion: r.Output})
		if err != nil || (*got[0].Value == 1) != r.Correct {
			t.Errorf("%s %s: %q: got %+v, %v; want %v (target %q)", r.Mode, key(r), r.Output, got, err, r.Correct, targets[key(r)])
		}
	}
	if counts["direct"] < 1000 || counts["cot"] < 1000 {
		t.Errorf("got %v outputs", counts)
	}
}

type row struct {
	Task, Target, Mode, Output string
	Idx                        int
	Correct                    bool
}

func key(r row) string { return r.Task + " " + strconv.Itoa(r.Idx) }
