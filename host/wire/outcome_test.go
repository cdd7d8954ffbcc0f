package wire

import (
	"fmt"
	"testing"
)

func episodeOf(ok bool, traces ...Trace) *Episode { return &Episode{OK: ok, Traces: traces} }

func failed(stop, typ string, status int64) Trace {
	t := Trace{StopCondition: stop}
	if typ != "" {
		t.Errors = []Error{{Type: typ, Message: "m", StatusCode: status}}
	}
	return t
}

func TestEpisode_Outcome(t *testing.T) {
	calls := func(reasons ...string) []ModelCall {
		var out []ModelCall
		for _, r := range reasons {
			out = append(out, ModelCall{FinishReason: r})
		}
		return out
	}
	done := Trace{OK: true, StopCondition: "agent_completed"}
	rows := []struct {
		name string
		ep   *Episode
		want string
	}{
		{"ok", episodeOf(true, done), "completed"},
		{"own stop", episodeOf(true, Trace{OK: true, StopCondition: "solved"}), "completed"},
		{"no trace, ok", episodeOf(true), "completed"},
		{"max_turns", episodeOf(true, Trace{OK: true, StopCondition: "max_turns"}), "limit"},
		{"max_output_tokens", episodeOf(true, Trace{OK: true, StopCondition: "max_output_tokens"}), "limit"},
		{"max_total_tokens of one of two", episodeOf(true, done, Trace{OK: true, StopCondition: "max_total_tokens"}), "limit"},
		{"agent_timeout", episodeOf(false, Trace{IsTimeout: true, StopCondition: "agent_timeout"}), "limit"},
		{"agent_timeout, reward raised", episodeOf(false, failed("agent_timeout", "TaskError", 0)), "error server task_error false"},
		{"length", episodeOf(true, Trace{OK: true, StopCondition: "agent_completed", Calls: calls("stop", "length")}), "limit"},
		{"length earlier on", episodeOf(true, Trace{OK: true, StopCondition: "agent_completed", Calls: calls("length", "stop")}), "completed"},
		{"errors of a tried-again attempt", episodeOf(true, Trace{OK: true, Errors: []Error{{Type: "ProviderError"}}}), "completed"},
		{"ok in spite of a failing trace", episodeOf(true, done, failed("provider_error", "ProviderError", 500)), "completed"},
		{"429", episodeOf(false, failed("provider_error", "ProviderError", 429)), "error model rate_limited true"},
		{"500", episodeOf(false, failed("provider_error", "ProviderError", 500)), "error model unavailable true"},
		{"HTML", episodeOf(false, failed("provider_error", "ProviderError", 502)), "error model unavailable true"},
		{"refused connection", episodeOf(false, failed("provider_error", "ProviderError", 503)), "error model unavailable true"},
		{"timeout", episodeOf(false, failed("provider_error", "ProviderError", 504)), "error model unavailable true"},
		{"408", episodeOf(false, failed("provider_error", "ProviderError", 408)), "error model unavailable true"},
		{"cut stream", episodeOf(false, failed("provider_error", "ProviderError", 0)), "error model unavailable true"},
		{"auth", episodeOf(false, failed("provider_error", "ProviderError", 401)), "error model rejected false"},
		{"context length", episodeOf(false, failed("provider_error", "ProviderError", 400)), "error model rejected false"},
		{"provider, only the call has it", episodeOf(false, Trace{StopCondition: "provider_error", Calls: []ModelCall{{Error: &Error{Type: "ProviderError", StatusCode: 429}}}}), "error model rate_limited true"},
		{"setup raises", episodeOf(false, failed("task_error", "TaskError", 0)), "error server task_error false"},
		{"reward raises", episodeOf(false, failed("agent_completed", "TaskError", 0)), "error server task_error false"},
		{"harness", episodeOf(false, failed("harness_error", "HarnessError", 0)), "error server harness_error false"},
		{"sandbox", episodeOf(false, failed("sandbox_error", "SandboxError", 0)), "error server sandbox_error true"},
		{"toolset", episodeOf(false, failed("toolset_error", "ToolsetError", 0)), "error server toolset_error false"},
		{"interception", episodeOf(false, failed("interception_error", "InterceptionError", 0)), "error server interception_error true"},
		{"tunnel", episodeOf(false, failed("tunnel_error", "TunnelError", 0)), "error server interception_error true"},
		{"stop condition alone", episodeOf(false, failed("sandbox_error", "", 0)), "error server sandbox_error true"},
		{"setup_timeout", episodeOf(false, failed("setup_timeout", "", 0)), "error server setup_timeout false"},
		{"finalize_timeout", episodeOf(false, failed("finalize_timeout", "", 0)), "error server finalize_timeout false"},
		{"scoring_timeout", episodeOf(false, failed("scoring_timeout", "TaskError", 0)), "error server scoring_timeout false"},
		{"unknown error", episodeOf(false, failed("error", "KeyError", 0)), "error server peer_error false"},
		{"newer error", episodeOf(false, failed("quantum_error", "QuantumError", 0)), "error server peer_error false"},
		{"one of two fails", episodeOf(false, done, failed("provider_error", "ProviderError", 429)), "error model rate_limited true"},
		{"env hook", &Episode{Errors: []Error{{Type: "EnvError", Message: "m"}}}, "error server env_error false"},
		{"env deadline", &Episode{IsTimeout: true, Traces: []Trace{done}}, "error server env_error false"},
		{"not ok, no reason", &Episode{Traces: []Trace{done}}, "error server env_error false"},
	}
	for _, row := range rows {
		if got := outcome(row.ep); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

func TestEpisode_Refused(t *testing.T) {
	say := func(m Message, reason string) *Episode {
		m.Role = "assistant"
		return episodeOf(true, Trace{OK: true, Nodes: []Node{{Parent: -1, Message: m, Sampled: true}}, Calls: []ModelCall{{FinishReason: reason}}})
	}
	rows := []struct {
		name string
		ep   *Episode
		want bool
	}{
		{"plain", say(Message{Content: Text("no refusal here")}, "stop"), false},
		{"content filter", say(Message{}, "content_filter"), true},
		{"refusal field", say(Message{Extra: Extra{{"refusal", mustValue("I cannot")}}}, "stop"), true},
		{"refusal part", say(Message{ProviderState: mustValue(l{m{"content": l{m{"type": "refusal", "refusal": "no"}}}})}, "stop"), true},
		{"only the word", say(Message{ProviderState: mustValue(l{m{"note": "refusal"}})}, "stop"), false},
		{"nothing", episodeOf(true), false},
	}
	for _, row := range rows {
		if got := row.ep.Refused(); got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
		if o, _ := row.ep.Outcome(); o != "completed" {
			t.Errorf("%s: got %s, want completed", row.name, o)
		}
	}
}

func TestTrace_Path(t *testing.T) {
	node := func(parent int, role, text string) Node {
		return Node{Parent: parent, Sampled: role == "assistant", Message: Message{Role: role, Content: Text(text)}}
	}
	tr := Trace{Nodes: []Node{
		node(-1, "system", "s"), node(0, "user", "u"), node(1, "assistant", "first"),
		node(1, "assistant", "second"), node(3, "user", "unanswered"),
	}}
	var got []string
	for _, n := range tr.Path() {
		got = append(got, n.Message.Content.String())
	}
	if fmt.Sprint(got) != "[s u second]" {
		t.Errorf("got %v, want the branch of the last sampled node", got)
	}
	if got := tr.Completion(); got != "second" {
		t.Errorf("got %q", got)
	}
	loop := Trace{Nodes: []Node{node(0, "user", "a"), node(0, "assistant", "b")}}
	if got := len(loop.Path()); got != 2 {
		t.Errorf("a root that is its own parent: got a path of %d, want 2", got)
	}
	ahead := Trace{Nodes: []Node{node(-1, "user", "a"), node(5, "assistant", "b")}}
	if got := len(ahead.Path()); got != 1 {
		t.Errorf("a parent that does not exist: got a path of %d, want 1", got)
	}
	if got := (&Trace{}).Path(); len(got) != 0 {
		t.Errorf("got %v of nothing", got)
	}
}

func TestMerge(t *testing.T) {
	one := &Episode{ID: "1", OK: false, NumInputTokens: 1, Traces: []Trace{failed("provider_error", "ProviderError", 500)}}
	two := &Episode{ID: "2", OK: true, NumInputTokens: 2, Traces: []Trace{{ID: "x", OK: true, Info: mustValue(m{"a": 1.0})}}}
	e := Merge([]*Episode{one, two}, 1)
	if e.ID != "2" || len(e.Traces) != 2 || e.NumInputTokens != 3 || e.Selected().ID != "x" {
		t.Fatalf("got %+v", e)
	}
	if got := outcome(e); got != "completed" {
		t.Errorf("outcome: got %q, want the selected one's", got)
	}
	if got := string(e.Selected().Info.appendJSON(nil, 0)); got != `{"a":1.0,"wevalr":{"selected":true}}` {
		t.Errorf("info: got %s", got)
	}
	again, err := ParseEpisode(line(t, e))
	if err != nil || again.Selected().ID != "x" {
		t.Errorf("the mark did not survive JSON: %v", err)
	}
	if e := Merge([]*Episode{e, one}, 1); e.Selected() != &e.Traces[2] {
		t.Error("merging again: the older mark still stands")
	}
	if two.Traces[0].Info.Get("wevalr") != nil {
		t.Error("merge changed its input")
	}
	if Merge(nil, 0) != nil || Merge([]*Episode{one}, 7).Selected() == nil {
		t.Error("edges")
	}
}
