package abi

// Names of an episode's views: what a manifest's `view` may list. A scorer gets those parts of the
// episode and nothing more.
const (
	ViewMessages      = "messages"
	ViewCompletion    = "completion"
	ViewInfo          = "info"
	ViewStopCondition = "stop_condition"
	ViewErrors        = "errors"
	ViewRewards       = "rewards"
	ViewMetrics       = "metrics"
	ViewUsage         = "usage"
	ViewTiming        = "timing"
	ViewToolCalls     = "tool_calls"
	ViewTokens        = "tokens"
	ViewTraces        = "traces"
)

// Views lists every view name; the first five are the default.
func Views() []string {
	return []string{
		ViewMessages, ViewCompletion, ViewInfo, ViewStopCondition, ViewErrors,
		ViewRewards, ViewMetrics, ViewUsage, ViewTiming, ViewToolCalls, ViewTokens, ViewTraces,
	}
}

// DefaultViews is what a scorer gets when its manifest names no view.
func DefaultViews() []string { return Views()[:5] }

// Episode is the view of an episode: parts that were not asked for are absent. It is taken of the
// selected trace, else the first; Traces lists all where a scorer asks for it.
type Episode struct {
	// Completion is the text of the last assistant message on the path: text parts joined, reasoning
	// left out, nil = "".
	Completion string `json:"completion,omitempty" msgpack:"completion,omitempty"`
	// Messages is the path from the root to the last sampled node.
	Messages      []Message           `json:"messages,omitempty" msgpack:"messages,omitempty"`
	Info          map[string]any      `json:"info,omitempty" msgpack:"info,omitempty"`
	StopCondition string              `json:"stop_condition,omitempty" msgpack:"stop_condition,omitempty"`
	Errors        []TraceError        `json:"errors,omitempty" msgpack:"errors,omitempty"`
	Rewards       map[string]*Reward  `json:"rewards,omitempty" msgpack:"rewards,omitempty"`
	Metrics       map[string]*float64 `json:"metrics,omitempty" msgpack:"metrics,omitempty"`
	Usage         *Usage              `json:"usage,omitempty" msgpack:"usage,omitempty"`
	Timing        map[string]any      `json:"timing,omitempty" msgpack:"timing,omitempty"`
	ToolCalls     []ToolCall          `json:"tool_calls,omitempty" msgpack:"tool_calls,omitempty"`
	Tokens        []NodeTokens        `json:"tokens,omitempty" msgpack:"tokens,omitempty"`
	// Traces holds every trace of the episode, each as its own view, in the episode's order.
	Traces []Episode `json:"traces,omitempty" msgpack:"traces,omitempty"`
}

// Message is one message of a conversation. Content is the text; parts that are no text are not
// carried.
type Message struct {
	Role       string     `json:"role" msgpack:"role"`
	Content    string     `json:"content" msgpack:"content"`
	Reasoning  string     `json:"reasoning,omitempty" msgpack:"reasoning,omitempty"`
	Name       string     `json:"name,omitempty" msgpack:"name,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty" msgpack:"tool_call_id,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty" msgpack:"tool_calls,omitempty"`
}

// ToolCall is a call that the model asked for. Arguments is the text as the model wrote it.
type ToolCall struct {
	ID        string `json:"id" msgpack:"id"`
	Name      string `json:"name" msgpack:"name"`
	Arguments string `json:"arguments" msgpack:"arguments"`
}

// TraceError is an error that the env-server recorded on a trace.
type TraceError struct {
	Type       string `json:"type" msgpack:"type"`
	Message    string `json:"message" msgpack:"message"`
	StatusCode int64  `json:"status_code,omitempty" msgpack:"status_code,omitempty"`
}

// Reward is a number that the env-server computed: its contribution is Score × Weight.
type Reward struct {
	Score  float64 `json:"score" msgpack:"score"`
	Weight float64 `json:"weight" msgpack:"weight"`
}

// Usage counts tokens; Cost is in the provider's currency, nil where unknown.
type Usage struct {
	InputTokens  int64    `json:"input_tokens" msgpack:"input_tokens"`
	OutputTokens int64    `json:"output_tokens" msgpack:"output_tokens"`
	Cost         *float64 `json:"cost,omitempty" msgpack:"cost,omitempty"`
}

// NodeTokens are the token streams of one node on the path.
type NodeTokens struct {
	IDs      []int64   `json:"ids" msgpack:"ids"`
	Mask     []bool    `json:"mask" msgpack:"mask"`
	Logprobs []float64 `json:"logprobs,omitempty" msgpack:"logprobs,omitempty"`
}
