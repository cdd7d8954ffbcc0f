package rollout

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/plugins/abi"
)

// row is what a server answers first, and what comes of it.
type row struct {
	name    string
	order   order
	outcome failure.Outcome
	source  failure.Source
	kind    string
	again   bool // gets a second try
}

// rows are the table "Outcomes and failure kinds", as far as a living server brings it about.
func rows() []row {
	return []row{
		{"ok", order{}, failure.Completed, "", "", false},
		{"max-turns", order{Stop: "max_turns"}, failure.Limit, "", "", false},
		{"max-tokens", order{Stop: "max_output_tokens"}, failure.Limit, "", "", false},
		{"agent-timeout", order{Stop: "agent_timeout"}, failure.Limit, "", "", false},
		{"length", order{Finish: "length"}, failure.Limit, "", "", false},
		{"refusal", order{Finish: "refusal"}, failure.Completed, "", "", false},
		{"filter", order{Finish: "content_filter"}, failure.Completed, "", "", false},
		{"own-stop", order{Stop: "gave_up"}, failure.Completed, "", "", false},
		{"429", order{Error: "ProviderError", Status: 429}, failure.Errored, failure.Model, "rate_limited", true},
		{"503", order{Error: "ProviderError", Status: 503}, failure.Errored, failure.Model, "unavailable", true},
		{"unreachable", order{Error: "ProviderError"}, failure.Errored, failure.Model, "unavailable", true},
		{"401", order{Error: "ProviderError", Status: 401}, failure.Errored, failure.Model, "rejected", false},
		{"task", order{Error: "TaskError"}, failure.Errored, failure.Server, "task_error", false},
		{"harness", order{Error: "HarnessError"}, failure.Errored, failure.Server, "harness_error", false},
		{"sandbox", order{Error: "SandboxError"}, failure.Errored, failure.Server, "sandbox_error", true},
		{"toolset", order{Error: "ToolsetError"}, failure.Errored, failure.Server, "toolset_error", false},
		{"interception", order{Error: "InterceptionError"}, failure.Errored, failure.Server, "interception_error", true},
		{"env", order{Error: "EnvError"}, failure.Errored, failure.Server, "env_error", false},
		{"setup", order{Stop: "setup_timeout"}, failure.Errored, failure.Server, "setup_timeout", false},
		{"finalize", order{Stop: "finalize_timeout"}, failure.Errored, failure.Server, "finalize_timeout", false},
		{"scoring", order{Stop: "scoring_timeout"}, failure.Errored, failure.Server, "scoring_timeout", false},
		{"refused", order{Do: "refuse"}, failure.Errored, failure.Server, "refused", false},
		{"peer", order{Do: "peer"}, failure.Errored, failure.Server, "peer_error", false},
		{"protocol", order{Do: "garbage"}, failure.Errored, failure.Server, "protocol", false},
	}
}

// The outcome table end to end: one run of all rows, each rollout allowed one more try, which would go
// well.
func TestOutcomes_Table(t *testing.T) {
	var tasks []abi.Task
	for _, r := range rows() {
		tasks = append(tasks, task(r.name, r.order, order{Say: "second"}))
	}
	journaled, w := newRun(t), newWatcher()
	s := spec(journaled, spool(t, journaled, tasks...), startServer(t, 1, 1))
	s.Retries, s.Observer = 1, w
	must(t, s)

	tries := map[string][]record{}
	for _, r := range records(t, journaled, "finish") {
		tries[r.Key] = append(tries[r.Key], r)
	}
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			got := tries[r.name]
			want := []failure.Outcome{r.outcome}
			if r.again {
				want = append(want, failure.Completed)
			}
			if len(got) != len(want) {
				t.Fatalf("got %d tries want %d", len(got), len(want))
			}
			for i, try := range got {
				if try.Outcome != want[i] || try.Try != i+1 {
					t.Errorf("try %d: got %s as try %d, want %s", i+1, try.Outcome, try.Try, want[i])
				}
			}
			file := journal.TracesFile
			if f := got[0].Failure; r.kind != "" {
				file = journal.ErroredFile
				if f == nil || f.Source != r.source || f.Kind != r.kind || f.Retryable != r.again {
					t.Errorf("got failure %+v, want %s/%s, retryable %v", f, r.source, r.kind, r.again)
				}
			} else if f != nil {
				t.Errorf("got failure %v, want none", f)
			}
			if ref := got[0].Episode; r.order.Do == "" && ref.File != file {
				t.Errorf("got the episode in %q, want %s", ref.File, file)
			}
			if last := w.ended[r.name+"#0"]; !slices.Equal(last, want[len(want)-1:]) {
				t.Errorf("got told of %v, want %v once", last, want[len(want)-1:])
			}
		})
	}
	if raw, err := os.ReadFile(filepath.Join(journaled.Dir(), journal.RawDir, "task_23-rollout_0-try_1.msgpack")); err != nil || !strings.Contains(string(raw), "no msgpack") {
		t.Errorf("got %q, %v, want the reply that could not be decoded", raw, err)
	}
	if f := tries["protocol"][0].Failure; !strings.Contains(f.Message, "raw/task_23-rollout_0-try_1.msgpack") {
		t.Errorf("got %q, want it to say where the reply is", f.Message)
	}
	if w.retried != 5 {
		t.Errorf("got told of %d retries, want 5", w.retried)
	}
}

// Each try is recorded and numbered on, over attempts too, and `retries` counts within one attempt.
func TestRetries_NumberedOverAttempts(t *testing.T) {
	limited := order{Error: "ProviderError", Status: 429}
	first := newRun(t)
	list := []abi.Task{task("t", limited, limited, limited, limited, order{Say: "at last"})}
	set := startServer(t, 1, 1)
	s := spec(first, spool(t, first, list...), set)
	s.Retries = 1
	must(t, s)

	second := reopen(t, first)
	s = spec(second, spool(t, second, list...), set)
	s.Retries = 2
	must(t, s)
	var got []int
	for _, r := range records(t, second, "finish") {
		got = append(got, r.Try)
		if want := map[bool]failure.Outcome{true: failure.Completed, false: failure.Errored}[r.Try == 5]; r.Outcome != want {
			t.Errorf("try %d: got %s want %s", r.Try, r.Outcome, want)
		}
	}
	if !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
		t.Errorf("got tries %v, want 1 to 5", got)
	}
	if n := second.Counts(1); n.Completed != 1 || n.Retried != 1 || n.Owed != 0 {
		t.Errorf("got %+v", n)
	}
}

// Numbers of a server that are none do not stand in the way of the record, and are not there.
func TestRecord_NumbersThatAreNone(t *testing.T) {
	huge := order{Reward: new(math.MaxFloat64), Weight: 10, Cost: new(0.5)}
	fine := order{Reward: new(0.5), Weight: 0.5, Cost: new(math.MaxFloat64)}
	r := newRun(t)
	must(t, spec(r, spool(t, r, task("huge", huge), task("fine", fine)), startServer(t, 1, 1)))
	for _, f := range records(t, r, "finish") {
		own, skipped := f.Rewards["own"], f.Rewards["not_run"]
		if skipped != nil || f.Outcome != failure.Completed || f.Usage.InputTokens != 3 || f.Usage.OutputTokens != 2 || f.Usage.Cost == nil {
			t.Errorf("%s: got %+v", f.Key, f)
		}
		if f.Key == "huge" && own != nil {
			t.Errorf("huge: got %v, want no reward", *own)
		}
		if f.Key == "fine" && (own == nil || *own != 0.25) {
			t.Errorf("fine: got %v, want 0.25", own)
		}
	}
}

// A reply to a plugin's call that cannot be decoded is kept too.
func TestRaw_OfADrivenRollout(t *testing.T) {
	r := newRun(t)
	s := spec(r, spool(t, r, task("a", order{Do: "garbage"})), startServer(t, 1, 1))
	s.Driver = load(t, bestOfN, withEnv("temperature"), nil)
	if got := run(t, s); got.err != nil {
		t.Fatal(got.err)
	}
	const place = "raw/task_0-rollout_0-try_1.msgpack"
	if raw, err := os.ReadFile(filepath.Join(r.Dir(), place)); err != nil || !strings.Contains(string(raw), "no msgpack") {
		t.Errorf("got %q, %v, want the reply that could not be decoded", raw, err)
	}
	if f := byKey(t, r)["a"].Failure; f.Kind != "protocol" || !strings.HasSuffix(f.Message, "; the reply is kept in "+place) {
		t.Errorf("got %v", f)
	}
}
