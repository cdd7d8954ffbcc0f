package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/host/failure"
)

// Usage is what the model calls of an episode used. InputTokens includes cache reads; Cost is the
// sum of what providers said, nil where none said anything.
type Usage struct {
	InputTokens, OutputTokens int64
	Cost                      *float64
}

// Usage sums the model calls of all traces. Judges' calls (extra_usage) are not the agent's and are
// left out.
func (e *Episode) Usage() Usage {
	var u Usage
	for i := range e.Traces {
		for j := range e.Traces[i].Calls {
			c := e.Traces[i].Calls[j].Usage
			if c == nil {
				continue
			}
			u.InputTokens += c.PromptTokens
			if c.CachedInputTokens != nil {
				u.InputTokens += *c.CachedInputTokens
			}
			u.OutputTokens += c.CompletionTokens
			if c.Cost != nil {
				sum := *c.Cost
				if u.Cost != nil {
					sum += *u.Cost
				}
				u.Cost = &sum
			}
		}
	}
	return u
}

// Outcome is how the run ended: completed, limit (the agent's own budget ended it), or error with
// the failure. `success: true` on the wire says nothing about it. Of a merged episode only the
// selected trace counts, of any other all do: the first failing trace gives the failure.
func (e *Episode) Outcome() (failure.Outcome, *failure.Failure) {
	traces := e.judged()
	limit := false
	for i := range traces {
		t := &traces[i]
		// An ok episode has nothing but limits to look for: errors of its traces are those of
		// attempts that a later one made good.
		if !e.OK && !t.OK {
			if f := t.failure(); f != nil {
				return failure.Errored, f
			}
		}
		limit = limit || t.atLimit()
	}
	switch {
	case e.OK && limit:
		return failure.Limit, nil
	case e.OK:
		return failure.Completed, nil
	case len(e.Errors) > 0:
		last := e.Errors[len(e.Errors)-1]
		return failure.Errored, last.failure("")
	case e.IsTimeout:
		return failure.Errored, failure.New(failure.Server, "env_error", "the env's own deadline expired")
	case limit:
		return failure.Limit, nil
	}
	return failure.Errored, failure.New(failure.Server, "env_error", "the episode is not ok and says no reason")
}

// atLimit reports whether the agent's own budget ended the trace.
func (t *Trace) atLimit() bool {
	switch t.StopCondition {
	case "max_turns", "agent_timeout":
		return true
	}
	if strings.HasPrefix(t.StopCondition, "max_") && strings.HasSuffix(t.StopCondition, "_tokens") {
		return true
	}
	c := t.lastCall()
	return c != nil && c.FinishReason == "length"
}

// lastCall is the last model call that did not fail.
func (t *Trace) lastCall() *ModelCall {
	for i := len(t.Calls) - 1; i >= 0; i-- {
		if t.Calls[i].Error == nil {
			return &t.Calls[i]
		}
	}
	return nil
}

// failure is why the trace failed; nil when only its own budget ended it.
func (t *Trace) failure() *failure.Failure {
	stop := t.StopCondition
	switch stop {
	case "setup_timeout", "finalize_timeout", "scoring_timeout":
		return failure.New(failure.Server, stop, "the %s deadline expired", strings.TrimSuffix(stop, "_timeout"))
	}
	if n := len(t.Errors); n > 0 {
		return t.Errors[n-1].failure(stop)
	}
	if t.atLimit() {
		return nil
	}
	if n := len(t.Calls); n > 0 && t.Calls[n-1].Error != nil {
		return t.Calls[n-1].Error.failure(stop)
	}
	if stop == "" {
		stop = "no stop condition"
	}
	none := Error{Message: "the trace is not ok and has no error (" + stop + ")"}
	return none.failure(stop)
}

// failure classifies an error by its type, else by the stop condition that it left.
func (e *Error) failure(stop string) *failure.Failure {
	text := clip(e.Message)
	if e.Type != "" {
		text = e.Type + ": " + text
	}
	if e.Type == "ProviderError" || e.Type == "" && stop == "provider_error" {
		return failure.New(failure.Model, modelKind(e.StatusCode), "%s", text)
	}
	kind := strings.ToLower(strings.TrimSuffix(e.Type, "Error")) + "_error"
	for _, k := range []string{kind, stop} {
		if k == "tunnel_error" { // a kind of interception error
			k = "interception_error"
		}
		if k == "provider_error" {
			return failure.New(failure.Model, modelKind(e.StatusCode), "%s", text)
		}
		if strings.HasSuffix(k, "_error") && k != "peer_error" && failure.Known(failure.Server, k) {
			return failure.New(failure.Server, k, "%s", text)
		}
	}
	return failure.New(failure.Server, "peer_error", "%s", text)
}

// modelKind tells apart what may go better next time. No status: the call never got an answer.
func modelKind(status int64) string {
	switch {
	case status == 429:
		return "rate_limited"
	case status == 408 || status < 400 || status >= 500:
		return "unavailable"
	}
	return "rejected"
}

// Refused reports whether the model declined to answer, or the provider's filter took the answer
// out. Such a rollout is completed and scored; this is its mark.
func (e *Episode) Refused() bool {
	traces := e.judged()
	for i := range traces {
		if traces[i].refused() {
			return true
		}
	}
	return false
}

func (t *Trace) refused() bool {
	if c := t.lastCall(); c != nil {
		switch c.FinishReason {
		case "content_filter", "refusal", "safety":
			return true
		}
	}
	m := t.last()
	if m == nil {
		return false
	}
	if s := m.Extra.Get("refusal").Str(); s != "" {
		return true
	}
	return hasRefusal(m.Content.parts) || hasRefusal(m.ProviderState)
}

// hasRefusal looks for a part {"type": "refusal"} at any depth.
func hasRefusal(v Value) bool {
	if !bytes.Contains(v, []byte("refusal")) {
		return false
	}
	var walk func(any) bool
	walk = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			if v["type"] == "refusal" {
				return true
			}
			for _, e := range v {
				if walk(e) {
					return true
				}
			}
		case []any:
			if slices.ContainsFunc(v, walk) {
				return true
			}
		}
		return false
	}
	return walk(v.Any())
}
