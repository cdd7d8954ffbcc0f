package main

import (
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

type options = map[string]any

func TestMatch(t *testing.T) {
	task := abi.Task{Key: "k", Target: " 42\n", Data: map[string]any{"answers": []any{"x", int64(7)}}}
	for _, c := range []struct {
		options    options
		completion string
		value      float64
		answer     string
	}{
		{options{"pattern": `\bsorry\b`}, "I am sorry.", 1, "sorry"},
		{options{"pattern": `\bsorry\b`}, "I am Sorry.", 0, ""},
		{options{"pattern": `\bsorry\b`, "flags": "i"}, "I am Sorry.", 1, "Sorry"},
		{options{"pattern": `^b$`}, "a\nb\nc", 0, ""},
		{options{"pattern": `^b$`, "flags": "m"}, "a\nb\nc", 1, "b"},
		{options{"pattern": `a(.*)c`, "flags": "ims"}, "A\nB\nC", 1, "\nB\n"},
		{options{"pattern": `a(x)?`}, "a", 1, ""},
		{options{"pattern": `is (\d+)`, "expected": "target"}, "is 1, no: is 42", 1, "42"},
		{options{"pattern": `is (\d+)`, "expected": "target", "which": "first"}, "is 1, no: is 42", 0, "1"},
		{options{"pattern": `is (\d+)`, "expected": "target", "group": "0"}, "is 42", 0, "is 42"},
		{options{"pattern": `(is) (?P<n>\d+)`, "expected": "target", "group": "n"}, "is 42", 1, "42"},
		{options{"pattern": `(is) (\d+)`, "expected": "target", "group": "2"}, "is 42", 1, "42"},
		{options{"pattern": `\d+`, "expected": "data.answers"}, "7", 1, "7"},
		{options{"pattern": `\d+`, "expected": "data.answers"}, "8", 0, "8"},
		{options{"pattern": `\d+`, "expected": "target"}, "", 0, ""},
		{options{"pattern": `.+`, "flags": "s"}, "\xff\xfe", 1, "\xff\xfe"},
	} {
		got, err := sdktest.New(t, sdktest.Host{Options: c.options}).Score("match", task, abi.Episode{Completion: c.completion})
		if err != nil || len(got) != 1 || *got[0].Value != c.value || got[0].Answer != c.answer {
			t.Errorf("%v %q: got %+v, %v; want %v %q", c.options, c.completion, got, err, c.value, c.answer)
		}
	}
}

func TestMatch_Hostile(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{Options: options{"pattern": "(a+)+", "expected": "target"}})
	task := abi.Task{Key: "k", Target: "a"}
	for text, null := range map[string]bool{strings.Repeat("a", 1<<20): false, strings.Repeat("ab", 1<<18): true, strings.Repeat("\xff", 1<<20): false} {
		got, err := p.Score("match", task, abi.Episode{Completion: text})
		if err != nil || len(got) != 1 || (got[0].Value == nil) != null {
			t.Errorf("%.8q: got %v, %v, want null %v", text, got[0].Value, err, null)
		}
	}
	if _, err := p.Score("match", abi.Task{Key: "k"}, abi.Episode{Completion: "a"}); err == nil {
		t.Error("no target: got no error")
	}
}

func TestInit_BadOptions(t *testing.T) {
	for _, o := range []options{
		{},
		{"pattern": "("},
		{"pattern": "a", "flags": "x"},
		{"pattern": "a", "which": "middle"},
		{"pattern": "a", "group": "1"},
		{"pattern": "a", "group": "-1"},
		{"pattern": "(?P<n>a)", "group": "m"},
		{"pattern": int64(1)},
	} {
		if _, err := sdktest.New(t, sdktest.Host{Options: o}).Init(); err == nil {
			t.Errorf("%v: got no error", o)
		}
	}
}
