package wire

import (
	"maps"
	"slices"
)

const (
	emptyMap  = 0x80
	emptyList = 0x90
)

// AppendJSON appends the episode as one line of traces.jsonl, without the newline, as verifiers
// writes it: nil fields left out, nil values of maps kept, no routed experts and no sampling masks.
// The error is always nil today; it is there because encoding is where one would be found.
func (e *Episode) AppendJSON(dst []byte) ([]byte, error) {
	s := sink{b: dst, json: true}
	e.encode(&s, true)
	return s.b, nil
}

// AppendJSON appends the trace as it stands in its episode's line; a partial one has its pending
// preview too.
func (t *Trace) AppendJSON(dst []byte) []byte {
	s := sink{b: dst, json: true}
	t.encode(&s)
	return s.b
}

func (e *Episode) encode(s *sink, traces bool) {
	m := s.open()
	s.strField("id", e.ID)
	s.mapField("env", e.Env, emptyMap, 1)
	s.key("task")
	e.Task.encode(s)
	s.valueField("group", e.Group, 1)
	s.valueField("run", e.Run, 1)
	s.boolField("ok", e.OK)
	s.boolField("is_timeout", e.IsTimeout)
	s.key("errors")
	seq(s, e.Errors, (*Error).encode)
	if traces {
		s.key("traces")
		seq(s, e.Traces, (*Trace).encode)
	}
	s.intField("num_input_tokens", e.NumInputTokens)
	s.intField("num_output_tokens", e.NumOutputTokens)
	s.intField("num_total_tokens", e.NumTotalTokens)
	s.extra(e.Extra)
	s.close(m)
}

func (t *Task) encode(s *sink) {
	m := s.open()
	s.strField("type", t.Type)
	s.mapField("data", t.Data, emptyMap, 1)
	s.optStrField("key", t.Key)
	s.optStrField("hash", t.Hash)
	s.extra(t.Extra)
	s.close(m)
}

func (t *Trace) encode(s *sink) {
	m := s.open()
	t.header(s)
	t.state(s, "agent")
	t.state(s, "tools")
	s.key("nodes")
	seq(s, t.Nodes, (*Node).encode)
	s.key("calls")
	seq(s, t.Calls, (*ModelCall).encode)
	t.state(s, "mm_token_type_id_map")
	s.valuesField("request_rewrites", t.RequestRewrites, 1)
	s.valuesField("response_rewrites", t.ResponseRewrites, 1)
	for _, name := range []string{"rewards", "metrics", "info", "root_reply"} {
		t.state(s, name)
	}
	s.key("extra_usage")
	seq(s, t.ExtraUsage, (*CallUsage).encode)
	for _, name := range []string{"is_completed", "ok", "stop_condition", "is_timeout"} {
		t.state(s, name)
	}
	s.key("errors")
	seq(s, t.Errors, (*Error).encode)
	for _, name := range []string{"timing", "num_input_tokens", "num_output_tokens", "num_total_tokens"} {
		t.state(s, name)
	}
	if len(t.Pending) > 0 {
		s.key("pending")
		seq(s, t.Pending, (*Message).encode)
	}
	s.extra(t.Extra)
	s.close(m)
}

// header writes what a trace's first delta says of it.
func (t *Trace) header(s *sink) {
	s.intField("version", t.Version)
	s.strField("id", t.ID)
	s.mapField("verifiers", t.Verifiers, emptyMap, 1)
	s.key("task")
	t.Task.encode(s)
}

// stateFields are the fields that a delta's `set` may carry, in the server's order.
func stateFields() []string {
	return []string{
		"agent", "tools", "mm_token_type_id_map", "rewards", "metrics", "info", "root_reply",
		"is_completed", "ok", "stop_condition", "is_timeout", "timing",
		"num_input_tokens", "num_output_tokens", "num_total_tokens",
	}
}

// state writes one field of those.
func (t *Trace) state(s *sink, name string) {
	switch name {
	case "agent":
		s.mapField(name, t.Agent, emptyMap, 1)
	case "tools":
		s.mapField(name, t.Tools, emptyList, 1)
	case "mm_token_type_id_map":
		s.mapField(name, t.MMTokenTypeIDMap, emptyMap, 0)
	case "rewards":
		s.key(name)
		sorted(s, t.Rewards, (*Reward).encode)
	case "metrics":
		s.key(name)
		sorted(s, t.Metrics, func(f *float64, s *sink) { s.float(*f) })
	case "info":
		s.mapField(name, t.Info, emptyMap, 0)
	case "root_reply":
		s.valueField(name, t.RootReply, 0)
	case "is_completed":
		s.boolField(name, t.IsCompleted)
	case "ok":
		s.boolField(name, t.OK)
	case "stop_condition":
		s.optStrField(name, t.StopCondition)
	case "is_timeout":
		s.boolField(name, t.IsTimeout)
	case "timing":
		s.mapField(name, t.Timing, emptyMap, 0)
	case "num_input_tokens":
		s.intField(name, t.NumInputTokens)
	case "num_output_tokens":
		s.intField(name, t.NumOutputTokens)
	case "num_total_tokens":
		s.intField(name, t.NumTotalTokens)
	}
}

// sorted writes a map by name; its nil values are values.
func sorted[T any](s *sink, values map[string]*T, each func(*T, *sink)) {
	m := s.open()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		s.key(name)
		if v := values[name]; v != nil {
			each(v, s)
		} else {
			s.null()
		}
	}
	s.close(m)
}

func (w *Reward) encode(s *sink) {
	m := s.open()
	s.floatField("score", w.Score)
	s.floatField("weight", w.Weight)
	s.extra(w.Extra)
	s.close(m)
}

func (n *Node) encode(s *sink) {
	m := s.open()
	s.indexField("parent", n.Parent)
	if !n.Tools.IsNil() {
		s.key("tools")
		s.value(n.Tools, 1)
	}
	s.valuesField("semantic_parents", n.SemanticParents, 1)
	s.key("message")
	n.Message.encode(s)
	s.boolField("sampled", n.Sampled)
	s.floatField("timestamp", n.Timestamp)
	s.key("token_ids")
	seq(s, n.TokenIDs, func(v *int32, s *sink) { s.int(int64(*v)) })
	s.key("mask")
	seq(s, n.Mask, func(v *bool, s *sink) { s.bool(*v) })
	s.key("is_content")
	seq(s, n.IsContent, func(v *bool, s *sink) { s.bool(*v) })
	s.key("logprobs")
	seq(s, n.Logprobs, func(v *float64, s *sink) { s.float(*v) })
	s.floatsField("advantages", n.Advantages)
	s.floatsField("reference_logprobs", n.ReferenceLogprobs)
	s.floatsField("trainer_logprobs", n.TrainerLogprobs)
	s.floatsField("entropies", n.Entropies)
	s.valueField("loss_weights", n.LossWeights, 0)
	if !s.json {
		s.valueField("routed_experts", n.RoutedExperts, 0)
		s.valueField("sampling_mask", n.SamplingMask, 0)
	}
	for _, f := range n.Extra {
		if s.json && (f.Name == "multi_modal_data" || f.Name == "kept_token_ids") {
			continue // raw, of older releases
		}
		s.key(f.Name)
		s.value(f.Value, 0)
	}
	s.close(m)
}

func (m *Message) encode(s *sink) {
	at := s.open()
	s.strField("role", m.Role)
	if m.Role == "tool" || m.ToolCallID != "" {
		s.strField("tool_call_id", m.ToolCallID)
	}
	if s.optional("content", !m.Content.IsNil()) {
		if m.Content.parts != nil {
			s.value(m.Content.parts, 1)
		} else {
			s.str(m.Content.text)
		}
	}
	if m.Role == "tool" || m.Name != "" {
		s.optStrField("name", m.Name)
	}
	if m.Role == "assistant" || m.Reasoning != nil {
		if s.optional("reasoning_content", m.Reasoning != nil) {
			s.str(*m.Reasoning)
		}
	}
	if m.Role == "assistant" || m.ToolCalls != nil {
		if s.optional("tool_calls", m.ToolCalls != nil) {
			seq(s, m.ToolCalls, (*ToolCall).encode)
		}
	}
	if m.Role == "assistant" || m.ProviderState != nil {
		s.valueField("provider_state", m.ProviderState, 0)
	}
	s.extra(m.Extra)
	s.close(at)
}

func (c *ToolCall) encode(s *sink) {
	m := s.open()
	s.strField("id", c.ID)
	s.strField("type", c.Type)
	s.strField("name", c.Name)
	s.optStrField("namespace", c.Namespace)
	s.strField("arguments", c.Arguments)
	s.extra(c.Extra)
	s.close(m)
}

func (c *ModelCall) encode(s *sink) {
	m := s.open()
	s.indexField("node", c.Node)
	s.optStrField("model", c.Model)
	s.valueField("sampling", c.Sampling, 1)
	s.optStrField("endpoint", c.Endpoint)
	s.optStrField("finish_reason", c.FinishReason)
	if s.optional("usage", c.Usage != nil) {
		c.Usage.encode(s)
	}
	s.key("time")
	span := s.open()
	s.floatField("start", c.Time.Start)
	s.floatField("end", c.Time.End)
	s.close(span)
	if s.optional("error", c.Error != nil) {
		c.Error.encode(s)
	}
	s.valueField("policy", c.Policy, 1)
	s.valueField("acp", c.ACP, 1)
	s.extra(c.Extra)
	s.close(m)
}

func (u *CallUsage) encode(s *sink) {
	m := s.open()
	s.intField("prompt_tokens", u.PromptTokens)
	s.intField("completion_tokens", u.CompletionTokens)
	if s.optional("cached_input_tokens", u.CachedInputTokens != nil) {
		s.int(*u.CachedInputTokens)
	}
	if s.optional("reasoning_tokens", u.ReasoningTokens != nil) {
		s.int(*u.ReasoningTokens)
	}
	if s.optional("cost", u.Cost != nil) {
		s.float(*u.Cost)
	}
	s.extra(u.Extra)
	s.close(m)
}

func (e *Error) encode(s *sink) {
	m := s.open()
	s.strField("type", e.Type)
	s.strField("message", e.Message)
	if s.optional("status_code", e.StatusCode != 0) {
		s.int(e.StatusCode)
	}
	s.optStrField("traceback", e.Traceback)
	s.extra(e.Extra)
	s.close(m)
}
