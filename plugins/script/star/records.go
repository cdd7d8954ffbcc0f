package star

import (
	"go.starlark.net/starlark"

	"github.com/wevalr/wevalr/plugins/abi"
)

func text(name, s string) field {
	return field{name, func() starlark.Value { return starlark.String(s) }}
}

func value(name string, v any) field {
	return field{name, func() starlark.Value { return toStarlark(v) }}
}

func dict(name string, m map[string]any) field {
	return field{name, func() starlark.Value { return dictOf(m, toStarlark) }}
}

func records[T any](name string, list []T, to func(T) starlark.Value) field {
	return field{name, func() starlark.Value { return listOf(list, to) }}
}

func taskRecord(t *abi.Task) *record {
	return newRecord("task",
		text("key", t.Key), dict("data", t.Data), value("target", t.Target), value("choices", t.Choices),
		text("cluster", t.Cluster), text("group", t.Group), dict("metadata", t.Metadata))
}

func episodeRecord(e *abi.Episode) *record {
	return newRecord("episode",
		text("completion", e.Completion),
		records("messages", e.Messages, message),
		dict("info", e.Info),
		text("stop_condition", e.StopCondition),
		records("errors", e.Errors, traceError),
		field{"rewards", func() starlark.Value { return dictOf(e.Rewards, reward) }},
		field{"metrics", func() starlark.Value { return dictOf(e.Metrics, number) }},
		field{"usage", func() starlark.Value { return usage(e.Usage) }},
		dict("timing", e.Timing),
		records("tool_calls", e.ToolCalls, toolCall),
		records("tokens", e.Tokens, tokens),
		records("traces", e.Traces, func(t abi.Episode) starlark.Value { return episodeRecord(&t) }))
}

func message(m abi.Message) starlark.Value {
	return newRecord("message",
		text("role", m.Role), text("content", m.Content), text("reasoning", m.Reasoning), text("name", m.Name),
		text("tool_call_id", m.ToolCallID), records("tool_calls", m.ToolCalls, toolCall))
}

func toolCall(c abi.ToolCall) starlark.Value {
	return newRecord("tool_call", text("id", c.ID), text("name", c.Name), text("arguments", c.Arguments))
}

func traceError(e abi.TraceError) starlark.Value {
	return newRecord("error", text("type", e.Type), text("message", e.Message), value("status_code", e.StatusCode))
}

func reward(r *abi.Reward) starlark.Value {
	if r == nil {
		return starlark.None
	}
	return newRecord("reward", value("score", r.Score), value("weight", r.Weight))
}

func number(v *float64) starlark.Value {
	if v == nil {
		return starlark.None
	}
	return starlark.Float(*v)
}

func usage(u *abi.Usage) starlark.Value {
	if u == nil {
		return starlark.None
	}
	return newRecord("usage", value("input_tokens", u.InputTokens), value("output_tokens", u.OutputTokens),
		field{"cost", func() starlark.Value { return number(u.Cost) }})
}

func tokens(t abi.NodeTokens) starlark.Value {
	return newRecord("tokens",
		records("ids", t.IDs, func(v int64) starlark.Value { return starlark.MakeInt64(v) }),
		records("mask", t.Mask, func(v bool) starlark.Value { return starlark.Bool(v) }),
		records("logprobs", t.Logprobs, func(v float64) starlark.Value { return starlark.Float(v) }))
}
