package wire

import "strings"

// Episode is what an env-server returns for one run. Field names in comments are the wire's, where
// they differ.
type Episode struct {
	ID        string
	Env       Value // {id, name}
	Task      Task
	Group     Value // {id}
	Run       Value // stamped by the consumer: {type, id, name, …}
	OK        bool  // every trace is ok, and so were the env's own hooks
	IsTimeout bool  // the env's own deadline expired
	Errors    []Error
	Traces    []Trace
	// Sums over the traces, as the server gives them.
	NumInputTokens, NumOutputTokens, NumTotalTokens int64
	Extra                                           Extra
}

// Task is the task as the env-server recorded it: the data after it went through its own class.
type Task struct {
	Type  string
	Data  Value
	Key   string
	Hash  string
	Extra Extra
}

// Trace is one agent's message graph.
type Trace struct {
	Version   int64
	ID        string
	Verifiers Value // {version, commit}
	Task      Task
	Agent     Value // {config, runtime, name, trainable}: opaque, it differs between releases
	Tools     Value // [tool]
	Nodes     []Node
	Calls     []ModelCall

	MMTokenTypeIDMap Value
	RequestRewrites  []Value
	ResponseRewrites []Value
	// Rewards by name; nil: scoring did not run (or gave no finite number).
	Rewards       map[string]*Reward
	Metrics       map[string]*float64
	Info          Value
	RootReply     Value
	ExtraUsage    []CallUsage // of judges and other calls outside the graph
	IsCompleted   bool
	OK            bool
	StopCondition string // "" where there is none yet
	IsTimeout     bool
	Errors        []Error
	Timing        Value // {start, boot, setup, agent, finalize, scoring}, UNIX seconds

	NumInputTokens, NumOutputTokens, NumTotalTokens int64

	// Pending previews the request in flight; only a partial trace has one.
	Pending []Message
	Extra   Extra
}

// Node is one message of the graph, with the tokens that it added.
type Node struct {
	Parent          int   // index into Trace.Nodes; -1: a root
	Tools           Value // of roots only
	SemanticParents []Value
	Message         Message
	Sampled         bool    // a model call produced it
	Timestamp       float64 // UNIX seconds

	TokenIDs  []int32
	Mask      []bool
	IsContent []bool
	Logprobs  []float64
	// nil where the peer has none.
	Advantages, ReferenceLogprobs, TrainerLogprobs, Entropies []float64
	LossWeights                                               Value

	// Raw tensors; never written to JSON.
	RoutedExperts, SamplingMask Value

	Extra Extra
}

// Message is one message of a conversation.
type Message struct {
	Role          string
	Content       Content
	Reasoning     *string    // reasoning_content
	ToolCalls     []ToolCall // nil where there are none
	ToolCallID    string     // of role tool
	Name          string     // of role tool
	ProviderState Value
	Extra         Extra
}

// Content is a message's content: a text, a list of parts, or (the zero value) nil.
type Content struct {
	text  string
	parts Value
	set   bool
}

// Text is content that is a plain text.
func Text(s string) Content { return Content{text: s, set: true} }

// IsNil reports whether there is no content, which is not the same as an empty text.
func (c Content) IsNil() bool { return !c.set && c.parts == nil }

// Parts is the list of parts, nil where the content is a plain text.
func (c Content) Parts() Value { return c.parts }

// String is the text: of a list of parts the text parts, joined.
func (c Content) String() string {
	if c.parts == nil {
		return c.text
	}
	list, _ := c.parts.Any().([]any)
	var s strings.Builder
	for _, p := range list {
		if m, ok := p.(map[string]any); ok && m["type"] == "text" {
			t, _ := m["text"].(string)
			s.WriteString(t)
		}
	}
	return s.String()
}

// ToolCall is a call that the model asked for. Arguments is the text as the model wrote it.
type ToolCall struct {
	ID, Type, Name string
	Namespace      string
	Arguments      string
	Extra          Extra
}

// ModelCall is one request to the model.
type ModelCall struct {
	Node         int // the assistant node it produced; -1: none, it failed
	Model        string
	Sampling     Value
	Endpoint     string
	FinishReason string // stop, length, tool_calls; "" for nil
	Usage        *CallUsage
	Time         Span
	Error        *Error
	Policy, ACP  Value
	Extra        Extra
}

// Span is a stretch of time in UNIX seconds.
type Span struct{ Start, End float64 }

// CallUsage is what the provider reported for one call. PromptTokens excludes cache reads.
type CallUsage struct {
	PromptTokens, CompletionTokens     int64
	CachedInputTokens, ReasoningTokens *int64
	Cost                               *float64
	Extra                              Extra
}

// Error is an error that the env-server recorded.
type Error struct {
	Type, Message string
	StatusCode    int64 // 0: none
	Traceback     string
	Extra         Extra
}

// Reward is a number that the env-server computed: it contributes Score × Weight.
type Reward struct {
	Score, Weight float64
	Extra         Extra
}
