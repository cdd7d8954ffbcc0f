package author

import (
	"context"
	"fmt"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
)

// isConform reports whether the plugin says that it does what testplugins/conform-go does, with the same
// names: then its every part has a known right answer.
func (g *guest) isConform() bool {
	for _, name := range []string{"length", "misbehave", "world", "spread", "calls"} {
		if _, err := g.scorer(name); err != nil {
			return false
		}
	}
	return true
}

// conformCases have one right answer each.
func conformCases() []*Case {
	task := abi.Task{Key: "k", Data: map[string]any{"prompt": "p"}}
	var out []*Case
	add := func(c *Case) { out = append(out, c) }
	codes := misbehaviours()
	for _, completion := range sortedKeys(codes) {
		code := codes[completion]
		add(&Case{
			name: fmt.Sprintf("conform: misbehave %q", completion), Scorer: "misbehave", Task: &task, Episode: &abi.Episode{Completion: completion},
			check: func(got result) (string, string) { return verdict(got.code == code, "error", got.code, code) },
		})
	}
	add(&Case{
		name: "conform: length", Scorer: "length", Task: &task, Seed: 9,
		Episode: &abi.Episode{Completion: "one two", Messages: []abi.Message{{Role: "user"}}, StopCondition: "done"},
		check: func(got result) (string, string) {
			want := `length 7, words 2, nothing skipped`
			if status, detail := verdict(values(got.scores) == want, "scores", values(got.scores), want); status == Fail {
				return status, detail
			}
			seen := text(got.scores[0].Metadata)
			want = `{"errors":0,"info":0,"key":"k","messages":1,"seed":9,"stop_condition":"done"}`
			return verdict(seen == want, "metadata", seen, want)
		},
	})
	add(&Case{
		name: "conform: spread", Scorer: "spread", Task: &task, Episodes: []abi.Episode{{Completion: "abc"}, {Completion: "a"}},
		check: func(got result) (string, string) {
			return verdict(values(got.scores) == "spread 2", "scores", values(got.scores), "spread 2")
		},
	})
	add(&Case{name: "conform: world", Scorer: "world", Task: &task, Episode: &abi.Episode{}, check: checkWorld, counts: true})
	for _, d := range drives() {
		add(d)
	}
	return out
}

// misbehaviours are completions that the scorer misbehave obeys, and the code of the failure.
func misbehaviours() map[string]string {
	return map[string]string{
		"": "", "panic": "trap", "error": "own_code", "plain error": "error", "env": "denied",
		"none": "response", "twice": "response", "range": "response", "nan": "response", "inf": "response", "huge": "response",
	}
}

// checkWorld wants a virtual clock, the asset, the option's default, and no dataset.
func checkWorld(got result) (string, string) {
	if got.err != nil {
		return Fail, got.err.Error()
	}
	seen := text(got.scores[0].Metadata)
	for _, want := range []string{`"greeting":"hello"`, `"dataset":"none"`, `"slept":true`, `"now":1640998800`, `"asset":"`} {
		if !strings.Contains(seen, want) {
			return Fail, want + " is missing in " + seen
		}
	}
	return Pass, ""
}

// drives are the ways to drive a rollout that the task's data names, and how many episodes come of it; 0 is
// an error.
func drives() []*Case {
	answers := func(_ context.Context, n int, _ abi.EnvRequest) (*abi.Episode, error) {
		return &abi.Episode{Completion: fmt.Sprint(n)}, nil
	}
	first := func(ctx context.Context, n int, req abi.EnvRequest) (*abi.Episode, error) {
		if n > 1 {
			return answers(ctx, n, req)
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	var out []*Case
	for _, d := range []struct {
		drive    string
		episodes int
		code     string
		answer   answerFunc
	}{
		{"run", 1, "", answers},
		{"chain", 2, "", answers},
		{"parallel", 8, "", answers},
		{"await", 3, "", answers},
		{"cancel", 1, "", first},
		{"take", 1, "", answers},
		{"sampling", 1, "", answers},
		{"ungranted", 0, "denied", answers},
		{"close", 0, "response", answers},
		{"nonsense", 0, "bad_drive", answers},
	} {
		out = append(out, &Case{
			name: "conform: drive " + d.drive, answer: d.answer,
			Task: &abi.Task{Key: "k", Data: map[string]any{"drive": d.drive, "prompt": "p"}},
			check: func(got result) (string, string) {
				want := fmt.Sprintf("calls %d", d.episodes)
				if d.episodes == 0 {
					want = ""
				}
				if status, detail := verdict(got.code == d.code, "error", got.errorText(), d.code); status == Fail {
					return status, detail
				}
				if got.running > 0 {
					return Fail, fmt.Sprintf("%d env calls still run after the rollout", got.running)
				}
				return verdict(values(got.scores) == want, "scores", values(got.scores), want)
			},
		})
	}
	return out
}

func verdict(ok bool, what, got, want string) (string, string) {
	if ok {
		return Pass, got
	}
	return Fail, fmt.Sprintf("%s: got %s want %s", what, orNone(got), orNone(want))
}
