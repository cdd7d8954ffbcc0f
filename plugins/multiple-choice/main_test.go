package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/internal/publicdata"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

func TestCorrect_Rules(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{})
	cities := []string{"Rome", "Paris", "New York", "York"}
	articles := []string{"A dog", "a cat", "It is a bird"}
	for _, c := range []struct {
		choices          []string
		completion, want string // "" = no answer
	}{
		// 1: all of it
		{cities, "B", "B"},
		{cities, " (b) ", "B"},
		{cities, "B.", "B"},
		{cities, "**B**", "B"},
		{cities, "Paris", "B"},
		{cities, "\"PARIS.\"", "B"},
		{cities, "B) Paris", "B"},
		{cities, "B. Paris", "B"},
		{cities, "(B) Paris", "B"},
		{cities, "**B: Paris**", "B"},
		{cities, "E", ""},
		{nil, "E", "E"},
		{articles, "a dog", "A"},
		{articles, "It is a bird.", "C"},
		// 2: said
		{cities, "First A, then C. The answer is B.", "B"},
		{cities, "The answer is (A). No, the answer is (B) because C is far.", "B"},
		{cities, "Answer: B", "B"},
		{cities, "**Answer:** B\nRome is (A).", "B"},
		{cities, "The correct answer is option B, not (C).", "B"},
		{cities, "The final answer is: **(B) Paris**. (A) is wrong", "B"},
		{cities, "The answer is Paris. Rome is not.", "B"},
		{cities, "The answer is New York", "C"},
		{cities, "the answer is\n\nB", "B"},
		{cities, "So $\\boxed{B}$, and (A) is not", "B"},
		{cities, "$\\boxed{\\text{B}}$", "B"},
		{cities, "The answer is b.", "B"},
		{cities, "The answer is (A) or (B).", ""},
		{cities, "The answer is A/B", ""},
		{cities, "(B) is in France. So the answer is (None of the above).", ""},
		{[]string{"Rome", "None of the above"}, "So the answer is none of the above.", "B"},
		{cities, "Its capital, the answer is a nice one: (B)", "B"},
		{cities, "The answer is B, since A is wrong.", "B"},
		{articles, "The answer is a cat", "B"},
		{articles, "The answer is A because it barks", "A"},
		{nil, "The answer is A because it barks", "A"},
		// 3: brackets
		{cities, "It must be (B), I think.", "B"},
		{cities, "(A) no.\n(B) yes!", "B"},
		{cities, "B) it has the tower\nin it", "B"},
		{cities, "Surely.\nB. It has the tower", "B"},
		// 4: one text
		{cities, "I think that Paris is right", "B"},
		{cities, "New York, of course it is", "C"},
		{cities, "York, of course it is", "D"},
		{cities, "Paris or Rome", ""},
		{cities, "Parisian", ""},
		// 5: alone
		{cities, "I'd say B", "B"},
		{cities, "A city is what I want: D", "D"},
		{cities, "A city is what I want", ""},
		{cities, "It has to be A.", "A"},
		{cities, "", ""},
		{cities, "I do not know", ""},
	} {
		target := c.want
		if target == "" {
			target = "A"
		}
		got, err := p.Score("correct", abi.Task{Key: "k", Choices: c.choices, Target: target}, abi.Episode{Completion: c.completion})
		if err != nil || len(got) != 1 || got[0].Answer != c.want || (*got[0].Value == 1) != (c.want != "") || (got[0].Label == "no_answer") != (c.want == "") {
			t.Errorf("%q of %q: got %+v, %v; want %q", c.completion, c.choices, got, err, c.want)
		}
	}
}

func TestCorrect_Targets(t *testing.T) {
	for _, c := range []struct {
		target any
		ok     bool
	}{
		{"B", true},
		{"(B)", true},
		{"b", true},
		{"paris", true},
		{int64(1), true},
		{1.0, true},
		{"B. Paris", true},
		{"Berlin", false},
		{int64(4), false},
		{int64(-1), false},
		{1.5, false},
		{nil, false},
		{true, false},
		{[]any{"B"}, false},
	} {
		task := abi.Task{Key: "k", Target: c.target, Data: map[string]any{"options": []any{"Rome", "Paris", int64(3)}}}
		host := sdktest.Host{Options: map[string]any{"choices": "data.options"}}
		got, err := sdktest.New(t, host).Score("correct", task, abi.Episode{Completion: "The answer is Paris"})
		if c.ok != (err == nil) || err == nil && *got[0].Value != 1 {
			t.Errorf("%v: got %v, %v, want it accepted: %v", c.target, got, err, c.ok)
		}
	}
	many := abi.Task{Key: "k", Target: "A", Choices: make([]string, 27)}
	if _, err := sdktest.New(t, sdktest.Host{}).Score("correct", many, abi.Episode{}); err == nil {
		t.Error("27 choices: got no error")
	}
}

func TestCorrect_Hostile(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{})
	task := abi.Task{Key: "k", Target: "A", Choices: []string{"", "x", "xx", "\xff"}}
	texts := []string{"\xff", "(", "((((", "answer is", "answer is ", "answer is *", "answer is (", "İanswer is B", "\\boxed{"}
	for _, unit := range []string{"A", "(A", "x", "answer is ", "answer is a b ", "\xff", "I ", "*A*", "x ", "\\boxed{"} {
		texts = append(texts, strings.Repeat(unit, 200_000/len(unit)))
	}
	for _, s := range texts {
		if got, err := p.Score("correct", task, abi.Episode{Completion: s}); err != nil || len(got) != 1 {
			t.Errorf("%.20q: got %v, %v", s, got, err)
		}
	}
}

// BIG-bench-hard: the published verdicts of its three tasks with letters, item by item.
func TestCorrect_BBH(t *testing.T) {
	dir := publicdata.Dir(t, "bbh")
	targets := map[string]row{}
	for _, r := range publicdata.Rows[row](t, filepath.Join(dir, "tasks.jsonl.gz")) {
		targets[key(r)] = r
	}
	options := map[string]map[string]any{"direct": {}, "cot": {"marker": "he answer is "}}
	counts := map[string]int{}
	for _, r := range publicdata.Rows[row](t, filepath.Join(dir, "outputs.jsonl.gz")) {
		task := targets[key(r)]
		if !task.MC {
			continue
		}
		counts[r.Mode]++
		got, err := sdktest.New(t, sdktest.Host{Options: options[r.Mode]}).Score("correct", abi.Task{Key: "k", Target: task.Target}, abi.Episode{Completion: r.Output})
		if err != nil || (*got[0].Value == 1) != r.Correct {
			t.Errorf("%s %s: …%q: got %+v, %v; want %v (target %q)", r.Mode, key(r), r.Output[max(0, len(r.Output)-80):], got, err, r.Correct, task.Target)
		}
		// The rules for prose need no marker.
		got, err = sdktest.New(t, sdktest.Host{}).Score("correct", abi.Task{Key: "k", Target: task.Target}, abi.Episode{Completion: r.Output})
		if err == nil && (*got[0].Value == 1) == r.Correct {
			counts[r.Mode+" as prose"]++
		}
	}
	t.Log(counts)
	if counts["direct"] != 824 || counts["cot"] != 824 || counts["direct as prose"] < 824 || counts["cot as prose"] < 821 {
		t.Errorf("got %v", counts)
	}
}

type row struct {
	Task, Target, Mode, Output string
	Idx                        int
	MC, Correct                bool
}

func key(r row) string { return r.Task + " " + strconv.Itoa(r.Idx) }
