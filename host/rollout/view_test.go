package rollout

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

var update = flag.Bool("update", false, "write the goldens")

// fullEpisode has something for every view, and things that no view may show.
func fullEpisode(t *testing.T) *wire.Episode {
	t.Helper()
	cost, metric, reasoning := 0.25, 1.5, "r"
	first := wire.Trace{ // selected by none
		ID: "t-0", OK: true, StopCondition: "agent_completed",
		Nodes: []wire.Node{{Parent: -1, Sampled: true, Message: wire.Message{Role: "assistant", Content: wire.Text("other")}}},
	}
	second := wire.Trace{
		ID: "t-1", OK: true, StopCondition: "max_turns",
		Info:    value(t, map[string]any{"k": "v", "wevalr": map[string]any{"selected": true}}),
		Timing:  value(t, map[string]any{"total": 1.5}),
		Rewards: map[string]*wire.Reward{"correct": {Score: 1, Weight: 0.5}, "not_run": nil},
		Metrics: map[string]*float64{"turns": &metric, "not_run": nil},
		Errors:  []wire.Error{{Type: "ProviderError", Message: "m", StatusCode: 429, Traceback: "not shown"}},
		Nodes: []wire.Node{
			{Parent: -1, Message: wire.Message{Role: "user", Content: wire.Text("q")}, TokenIDs: []int32{1}, Mask: []bool{false}},
			{
				Parent: 0, Sampled: true, TokenIDs: []int32{2}, Mask: []bool{true}, Logprobs: []float64{-0.5},
				Message: wire.Message{Role: "assistant", Reasoning: &reasoning, ToolCalls: []wire.ToolCall{{ID: "call_1", Type: "function", Name: "add", Arguments: `{"a":1}`}}},
			},
			{Parent: 1, Message: wire.Message{Role: "tool", Content: wire.Text("42"), Name: "add", ToolCallID: "call_1"}},
			{Parent: 0, Sampled: true, Message: wire.Message{Role: "assistant", Content: wire.Text("a branch that was left")}},
			{Parent: 2, Sampled: true, Message: wire.Message{Role: "assistant", Content: wire.Text("it is 42")}},
			{Parent: 4, Message: wire.Message{Role: "user", Content: wire.Text("after the last sampled node")}},
		},
		Calls: []wire.ModelCall{{Node: 4, Usage: &wire.CallUsage{PromptTokens: 1, CompletionTokens: 2, Cost: &cost}}},
	}
	return &wire.Episode{ID: "e", OK: true, Traces: []wire.Trace{first, second}, Errors: []wire.Error{{Type: "EnvError", Message: "of the episode"}}}
}

func asJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Each view holds its own part and nothing more, in the shape that abi's golden fixes.
func TestView_GoldenPerName(t *testing.T) {
	ep := fullEpisode(t)
	views := map[string]any{}
	for _, name := range abi.Views() {
		names := []string{name}
		if name == abi.ViewTraces {
			names = append(names, abi.ViewCompletion)
		}
		got, ok := asJSON(t, View(ep, names)).(map[string]any)
		if !ok || len(got) != len(names) || got[name] == nil {
			t.Errorf("%s: got %v", name, got)
		}
		views[name] = got[name]
	}
	text, err := json.MarshalIndent(views, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "views.json")
	if *update {
		if err := os.WriteFile(golden, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != strings.TrimSpace(string(want)) {
		t.Errorf("got %s\nwant %s", text, want)
	}

	raw, err := os.ReadFile(filepath.Join(hosttest.Root(t), "plugins", "abi", "testdata", "views.json"))
	if err != nil {
		t.Fatal(err)
	}
	var shapes map[string]any
	if err := json.Unmarshal(raw, &shapes); err != nil {
		t.Fatal(err)
	}
	for name := range views {
		if name == abi.ViewInfo { // free form
			continue
		}
		if got, want := shape(views[name]), shape(shapes[name]); got != want {
			t.Errorf("%s: got the shape %s, abi has %s", name, got, want)
		}
	}
}

// shape is what a JSON value looks like: its keys and types; a list's elements are taken together.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if v[k] != nil {
				parts = append(parts, k+":"+shape(v[k]))
			}
		}
		return "{" + strings.Join(parts, " ") + "}"
	case []any:
		all := map[string]any{}
		for _, e := range v {
			m, ok := e.(map[string]any)
			if !ok {
				return "[" + shape(e) + "]"
			}
			for k, v := range m {
				if list, ok := v.([]any); !ok || len(list) > 0 {
					all[k] = v
				}
			}
		}
		return "[" + shape(all) + "]"
	}
	return fmt.Sprintf("%T", v)
}

// A view of an episode and one of its line on disk are the same.
func TestView_SameFromDisk(t *testing.T) {
	ep := fullEpisode(t)
	line, err := ep.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := wire.ParseEpisode(line)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range abi.Views() {
		if got, want := asJSON(t, View(back, []string{name})), asJSON(t, View(ep, []string{name})); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v\nwant %v", name, got, want)
		}
	}
}

func TestView_OfNothing(t *testing.T) {
	for _, ep := range []*wire.Episode{{}, {Traces: []wire.Trace{{}}}} {
		got := View(ep, abi.Views())
		if got.Completion != "" || len(got.Messages) != 0 || len(got.Traces) != len(ep.Traces) || got.Usage == nil {
			t.Errorf("got %+v", got)
		}
	}
	if got := View(fullEpisode(t), nil); !reflect.DeepEqual(got, &abi.Episode{}) {
		t.Errorf("no names: got %+v", got)
	}
}
