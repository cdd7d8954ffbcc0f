package abi_test

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
)

var update = flag.Bool("update", false, "write the goldens")

func TestValidTaskKey(t *testing.T) {
	for key, want := range map[string]bool{
		"test-0": true, "a/b:c_d.e": true, "A": true, ".": true, strings.Repeat("k", 200): true,
		"": false, "..": false, "a/../b": false, "a b": false, "ü": false, "a\n": false, strings.Repeat("k", 201): false,
	} {
		if got := abi.ValidTaskKey(key); got != want {
			t.Errorf("%q: got %v want %v", key, got, want)
		}
	}
}

func TestStatus_String(t *testing.T) {
	seen := map[string]abi.Status{}
	for s := abi.Protocol; s <= abi.Denied; s++ {
		if before, ok := seen[s.String()]; ok {
			t.Errorf("%d and %d are both %q", s, before, s)
		}
		seen[s.String()] = s
	}
	if got := abi.Status(-99).String(); got != "internal" {
		t.Errorf("an unknown status: got %q", got)
	}
}

// The shape of every view, as JSON: a change here is a change of the ABI.
func TestViews_Golden(t *testing.T) {
	cost, metric := 0.25, 1.5
	call := abi.ToolCall{ID: "call_1", Name: "add", Arguments: `{"a":1}`}
	full := abi.Episode{
		Completion:    "42",
		Messages:      []abi.Message{{Role: "user", Content: "q"}, {Role: "assistant", Content: "", Reasoning: "r", ToolCalls: []abi.ToolCall{call}}, {Role: "tool", Content: "42", Name: "add", ToolCallID: "call_1"}},
		Info:          map[string]any{"k": "v"},
		StopCondition: "max_turns",
		Errors:        []abi.TraceError{{Type: "ProviderError", Message: "m", StatusCode: 429}},
		Rewards:       map[string]*abi.Reward{"correct": {Score: 1, Weight: 0.5}, "not_run": nil},
		Metrics:       map[string]*float64{"turns": &metric, "not_run": nil},
		Usage:         &abi.Usage{InputTokens: 1, OutputTokens: 2, Cost: &cost},
		Timing:        map[string]any{"total": 1.5},
		ToolCalls:     []abi.ToolCall{call},
		Tokens:        []abi.NodeTokens{{IDs: []int64{1, 2}, Mask: []bool{false, true}, Logprobs: []float64{-0.5}}},
		Traces:        []abi.Episode{{Completion: "42"}, {}},
	}
	fields := reflect.ValueOf(full)
	views := map[string]any{}
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		views[name] = fields.Field(i).Interface()
	}
	for _, name := range abi.Views() {
		if _, ok := views[name]; !ok {
			t.Errorf("view %s has no field", name)
		}
	}
	if len(views) != len(abi.Views()) {
		t.Errorf("got %d fields and %d views", len(views), len(abi.Views()))
	}
	got, err := json.MarshalIndent(views, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/views.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != strings.TrimSpace(string(want)) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
