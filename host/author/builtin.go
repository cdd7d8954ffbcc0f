package author

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

// Statuses of a case.
const (
	Pass = "pass"
	Warn = "warn" // allowed, and hardly meant
	Fail = "fail"
)

// hugeBytes is the length of the built-in huge completion.
const hugeBytes = 1e6

// builtins are the cases that every plugin gets: one set for each scorer, the tasks, failing env-servers.
// They use the options and tasks of the plugin's own cases where it has some.
func (g *guest) builtins(ctx context.Context, own []*Case) []*Case {
	m := g.in.Manifest
	options := firstOptions(own, "")
	var out []*Case
	task := abi.Task{Key: "builtin", Data: map[string]any{"prompt": "What is 6 × 7?"}, Target: "42"}
	if provides(m, abi.ProvidesTask) {
		out = append(out, &Case{Options: options, name: "tasks", check: checkTasks})
		if p, err := g.with(ctx, options); err == nil {
			if got := g.enumerate(ctx, p); len(got.tasks) > 0 {
				task = got.tasks[0]
			}
		}
	}
	for i := range m.Scorers {
		s := &m.Scorers[i]
		if s.Kind == plugin.KindDriver || g.isConform() && s.Name == "world" { // which counts its calls
			continue
		}
		t := task
		for _, c := range own {
			if c.Scorer == s.Name {
				t = *c.Task
				break
			}
		}
		out = append(out, scorerCases(s, t, firstOptions(own, s.Name))...)
	}
	if provides(m, abi.ProvidesRollout) {
		out = append(out, rolloutCases(rolloutTask(own, task), options)...)
	}
	return out
}

func provides(m *plugin.Manifest, role string) bool {
	return slices.Contains(m.Provides, role)
}

// firstOptions are those of the first case of a scorer, or of any scorer.
func firstOptions(own []*Case, scorer string) map[string]any {
	var options map[string]any
	for _, c := range own {
		if c.Scorer == scorer && scorer != "" {
			return c.Options
		}
		if options == nil && c.Want.Error == "" {
			options = c.Options
		}
	}
	return options
}

func rolloutTask(own []*Case, task abi.Task) abi.Task {
	for _, c := range own {
		if c.kind() == "rollout" {
			return *c.Task
		}
	}
	return task
}

// scorerCases are the built-in cases of one scorer.
func scorerCases(s *plugin.Scorer, task abi.Task, options map[string]any) []*Case {
	noTarget := task
	noTarget.Target = []any{nil, map[string]any{"": []any{}}}
	answer := answerOf(task)
	c := func(name string, task abi.Task, ep abi.Episode, check func(result) (string, string)) *Case {
		out := &Case{Options: options, Scorer: s.Name, Task: &task, name: s.Name + ": " + name, check: check}
		if s.Kind == plugin.KindGroup {
			out.Episodes = []abi.Episode{ep, {}}
		} else {
			out.Episode = &ep
		}
		return out
	}
	huge := strings.Repeat("word ", hugeBytes/5)
	huge = huge[min(len(answer), len(huge)):] + answer
	return []*Case{
		c("oracle", task, said(answer), checkOracle(s)),
		c("empty", task, said(""), checkEmpty),
		c("malformed episode", task, malformed(), checkAnswers),
		c("malformed task", noTarget, said(answer), checkAnswers),
		c("huge", task, said(huge), checkAnswers),
		c("errored", task, errored(), checkAnswers),
	}
}

// answerOf is the target as a text.
func answerOf(t abi.Task) string {
	switch x := t.Target.(type) {
	case nil:
		return ""
	case string:
		return x
	case []any:
		if len(x) > 0 {
			return answerOf(abi.Task{Target: x[0]})
		}
		return ""
	}
	return text(t.Target)
}

func said(s string) abi.Episode {
	return abi.Episode{
		Completion: s, StopCondition: "done",
		Messages: []abi.Message{{Role: "user", Content: "q"}, {Role: "assistant", Content: s}},
	}
}

// malformed is what a model, a harness or an attacker may leave: nothing in it is well-formed but the bytes.
func malformed() abi.Episode {
	return abi.Episode{
		Completion: "\x00\u202e\ufffd{\"a\": [1,,]} \\ ``` <|end|> 1e999 -0 ٤٢",
		Messages: []abi.Message{
			{},
			{Role: "nobody", Content: "\n\t\u2028"},
			{Role: "assistant", ToolCalls: []abi.ToolCall{{Name: "", Arguments: `{"a":`}}},
			{Role: "tool", ToolCallID: "none"},
		},
		Info:    map[string]any{"": nil, "deep": []any{[]any{[]any{map[string]any{"a": []any{}}}}}},
		Rewards: map[string]*abi.Reward{"": nil}, Metrics: map[string]*float64{"": nil},
		Errors: []abi.TraceError{{}}, Tokens: []abi.NodeTokens{{}}, Usage: &abi.Usage{InputTokens: -1}, Traces: []abi.Episode{{}},
	}
}

// errored is an episode that ended in an error before the model said anything.
func errored() abi.Episode {
	return abi.Episode{
		StopCondition: "error", Messages: []abi.Message{{Role: "user", Content: "q"}},
		Errors: []abi.TraceError{{Type: "ProviderError", Message: "overloaded", StatusCode: 529}},
	}
}

// broken reports a call that ended in another way than the plugin's own words.
func broken(got result) (string, string) {
	if got.err != nil && !own(got.err) {
		return Fail, got.err.Error()
	}
	return Pass, ""
}

// checkAnswers accepts scores and errors of the plugin's own.
func checkAnswers(got result) (string, string) {
	if status, detail := broken(got); status == Fail {
		return status, detail
	}
	if got.err != nil {
		return Pass, "error " + got.code
	}
	return Pass, values(got.scores)
}

func checkEmpty(got result) (string, string) {
	status, detail := checkAnswers(got)
	if status == Pass && got.err != nil {
		return Warn, "error " + got.code + ": a model that says nothing makes a missing score, where 0 is usual"
	}
	return status, detail
}

func checkOracle(s *plugin.Scorer) func(result) (string, string) {
	return func(got result) (string, string) {
		status, detail := checkAnswers(got)
		if status == Fail || len(s.Range) != 2 {
			return status, detail
		}
		best := s.Range[1]
		if !s.Better() {
			best = s.Range[0]
		}
		if got.err != nil || got.scores[0].Value == nil || *got.scores[0].Value != best {
			return Warn, fmt.Sprintf("%s: the target alone does not get the best score, %g", detail, best)
		}
		return Pass, detail
	}
}

func checkTasks(got result) (string, string) {
	if status, detail := broken(got); status == Fail {
		return status, detail
	}
	if got.err != nil {
		return Warn, "error " + got.code + ": " + got.err.Error()
	}
	more := ""
	if len(got.keys) == maxTasks {
		more = ", the first ones"
	}
	return Pass, fmt.Sprintf("%d tasks%s", len(got.keys), more)
}

func values(scores []abi.Score) string {
	out := make([]string, len(scores))
	for i, s := range scores {
		out[i] = s.Name + " skipped"
		if s.Value != nil {
			out[i] = fmt.Sprintf("%s %g", s.Name, *s.Value)
		}
	}
	return strings.Join(out, ", ")
}

// rolloutCases are env-servers that answer, fail, die and are never heard of again.
func rolloutCases(task abi.Task, options map[string]any) []*Case {
	code := int64(1)
	with := func(name string, f answerFunc) *Case {
		return &Case{Options: options, Task: &task, name: "rollout: " + name, answer: f, check: func(got result) (string, string) {
			if got.running > 0 {
				return Fail, fmt.Sprintf("%d env calls still run after the rollout", got.running)
			}
			if status, detail := broken(got); status == Fail {
				return status, detail
			}
			if got.err != nil {
				return Pass, fmt.Sprintf("error %s after %d calls", got.code, got.calls)
			}
			return Pass, fmt.Sprintf("%d calls, selected %d %s", got.calls, got.selected, values(got.scores))
		}}
	}
	return []*Case{
		with("answers", func(_ context.Context, n int, _ abi.EnvRequest) (*abi.Episode, error) {
			return &abi.Episode{Completion: fmt.Sprintf("answer %d", n)}, nil
		}),
		with("peer error", func(context.Context, int, abi.EnvRequest) (*abi.Episode, error) {
			return nil, &abi.EnvError{Status: abi.PeerFailed, Source: "server", Kind: "peer_error", Message: "no"}
		}),
		with("server exited", func(context.Context, int, abi.EnvRequest) (*abi.Episode, error) {
			return nil, &abi.EnvError{
				Status: abi.ServerExited, Source: "server", Kind: "exited", Message: "the env-server's process has ended",
				Server: &abi.ServerFacts{Generation: 1, Code: &code, UptimeS: 1.5, Tail: []string{"last words"}},
			}
		}),
		with("unknown status", func(context.Context, int, abi.EnvRequest) (*abi.Episode, error) {
			return nil, &abi.EnvError{Status: -99, Source: "host", Kind: "of_the_future", Message: "a status of a newer minor"}
		}),
	}
}
