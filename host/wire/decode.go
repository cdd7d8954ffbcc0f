package wire

import "math"

// list appends the elements of a list. What a header promises is not allocated before it has come.
func list[T any](r *reader, dst []T, each func(*T, *reader)) []T {
	n := r.listLen()
	if dst == nil {
		dst = make([]T, 0, min(n, 1+(len(r.b)-r.i)/64))
	}
	for range n {
		if r.err != nil {
			break
		}
		dst = append(dst, *new(T))
		each(&dst[len(dst)-1], r)
	}
	return dst
}

func (e *Episode) decode(r *reader) {
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "id":
			e.ID = r.str()
		case "env":
			e.Env = r.value()
		case "task":
			e.Task.decode(r)
		case "group":
			e.Group = r.value()
		case "run":
			e.Run = r.value()
		case "ok":
			e.OK = r.bool()
		case "is_timeout":
			e.IsTimeout = r.bool()
		case "errors":
			e.Errors = list(r, e.Errors, (*Error).decode)
		case "traces":
			e.Traces = list(r, e.Traces, (*Trace).decode)
		case "num_input_tokens":
			e.NumInputTokens = r.i64()
		case "num_output_tokens":
			e.NumOutputTokens = r.i64()
		case "num_total_tokens":
			e.NumTotalTokens = r.i64()
		default:
			e.Extra.set(k, r.value())
		}
	}
}

func (t *Task) decode(r *reader) {
	*t = Task{}
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "type":
			t.Type = r.str()
		case "data":
			start := r.i
			r.skip()
			if v := Value(r.b[min(start, r.i):r.i]); !v.same(r.data) {
				r.data = append(Value(nil), v...)
			}
			t.Data = r.data
		case "key":
			t.Key = r.str()
		case "hash":
			t.Hash = r.str()
		default:
			t.Extra.set(k, r.value())
		}
	}
}

func (t *Trace) decode(r *reader) {
	for range r.mapLen() {
		t.field(r, r.key())
	}
}

// field takes one field of a trace; it is how a whole trace, `open` and `set` are read.
func (t *Trace) field(r *reader, k []byte) {
	switch string(k) {
	case "version":
		t.Version = r.i64()
	case "id":
		t.ID = r.str()
	case "verifiers":
		t.Verifiers = r.value()
	case "task":
		t.Task.decode(r)
	case "agent":
		t.Agent = r.value()
	case "tools":
		t.Tools = r.value()
	case "nodes":
		t.Nodes = list(r, t.Nodes, (*Node).decode)
	case "calls":
		t.Calls = list(r, t.Calls, (*ModelCall).decode)
	case "mm_token_type_id_map":
		t.MMTokenTypeIDMap = r.value()
	case "request_rewrites":
		t.RequestRewrites = r.values(t.RequestRewrites)
	case "response_rewrites":
		t.ResponseRewrites = r.values(t.ResponseRewrites)
	case "rewards":
		t.Rewards = r.rewards()
	case "metrics":
		t.Metrics = r.metrics()
	case "info":
		t.Info = r.value()
	case "root_reply":
		t.RootReply = r.value()
	case "extra_usage":
		t.ExtraUsage = list(r, t.ExtraUsage, (*CallUsage).decode)
	case "is_completed":
		t.IsCompleted = r.bool()
	case "ok":
		t.OK = r.bool()
	case "stop_condition":
		t.StopCondition = r.str()
	case "is_timeout":
		t.IsTimeout = r.bool()
	case "errors":
		t.Errors = list(r, t.Errors, (*Error).decode)
	case "timing":
		t.Timing = r.value()
	case "num_input_tokens":
		t.NumInputTokens = r.i64()
	case "num_output_tokens":
		t.NumOutputTokens = r.i64()
	case "num_total_tokens":
		t.NumTotalTokens = r.i64()
	case "pending":
		t.Pending = list(r, nil, (*Message).decode)
	default:
		t.Extra.set(k, r.value())
	}
}

func (r *reader) rewards() map[string]*Reward {
	n := r.mapLen()
	m := make(map[string]*Reward, min(n, 64))
	for range n {
		name := string(r.key())
		if r.null() {
			m[name] = nil
			continue
		}
		w := &Reward{}
		finite := true
		for range r.mapLen() {
			switch k := r.key(); string(k) {
			case "score":
				finite = finite && r.peek() != 0xc0
				w.Score = r.f64()
			case "weight":
				w.Weight = r.f64()
			default:
				w.Extra.set(k, r.value())
			}
		}
		if !finite || !isFinite(w.Score) || !isFinite(w.Weight) {
			w = nil
		}
		m[name] = w
	}
	return m
}

func (r *reader) metrics() map[string]*float64 {
	n := r.mapLen()
	m := make(map[string]*float64, min(n, 64))
	for range n {
		name := string(r.key())
		m[name] = r.optFloat()
	}
	return m
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// optFloat takes a number; nil and what is not finite are nil.
func (r *reader) optFloat() *float64 {
	if r.null() {
		return nil
	}
	if f := r.f64(); isFinite(f) {
		return &f
	}
	return nil
}

func (r *reader) optInt() *int64 {
	if r.null() {
		return nil
	}
	n := r.i64()
	return &n
}

// index takes an index; nil is -1.
func (r *reader) index() int {
	if r.null() {
		return -1
	}
	at := r.i
	n := r.i64()
	if n < 0 || n > math.MaxInt32 {
		r.fail(at, "an index")
		return -1
	}
	return int(n)
}

func (n *Node) decode(r *reader) {
	at := r.i
	n.Parent = -1
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "parent":
			n.Parent = r.index()
		case "tools":
			n.Tools = r.value()
		case "semantic_parents":
			n.SemanticParents = r.values(n.SemanticParents)
		case "message":
			n.Message.decode(r)
		case "sampled":
			n.Sampled = r.bool()
		case "timestamp":
			n.Timestamp = r.f64()
		case "token_ids":
			n.TokenIDs = r.ints()
		case "mask":
			n.Mask = r.bools()
		case "is_content":
			n.IsContent = r.bools()
		case "logprobs":
			n.Logprobs = r.floats()
		case "advantages":
			n.Advantages = r.floats()
		case "reference_logprobs":
			n.ReferenceLogprobs = r.floats()
		case "trainer_logprobs":
			n.TrainerLogprobs = r.floats()
		case "entropies":
			n.Entropies = r.floats()
		case "loss_weights":
			n.LossWeights = r.value()
		case "routed_experts":
			n.RoutedExperts = r.value()
		case "sampling_mask":
			n.SamplingMask = r.value()
		default:
			n.Extra.set(k, r.value())
		}
	}
	if n.Message.Role == "" {
		r.fail(at, "a node with a message")
	}
}

func (m *Message) decode(r *reader) {
	at := r.i
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "role":
			m.Role = r.str()
		case "content":
			switch {
			case r.null():
			case r.isStr():
				m.Content = Text(r.str())
			case r.isList():
				m.Content.parts = r.value()
			default:
				r.fail(r.i, "a text or a list of parts")
			}
		case "reasoning_content":
			m.Reasoning = r.optStr()
		case "tool_calls":
			if !r.null() {
				m.ToolCalls = list(r, nil, (*ToolCall).decode)
			}
		case "tool_call_id":
			m.ToolCallID = r.str()
		case "name":
			m.Name = r.str()
		case "provider_state":
			m.ProviderState = r.value()
		default:
			m.Extra.set(k, r.value())
		}
	}
	if m.Role == "" {
		r.fail(at, "a message with a role")
	}
}

func (c *ToolCall) decode(r *reader) {
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "id":
			c.ID = r.str()
		case "type":
			c.Type = r.str()
		case "name":
			c.Name = r.str()
		case "namespace":
			c.Namespace = r.str()
		case "arguments":
			c.Arguments = r.str()
		default:
			c.Extra.set(k, r.value())
		}
	}
}

func (c *ModelCall) decode(r *reader) {
	c.Node = -1
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "node":
			c.Node = r.index()
		case "model":
			c.Model = r.str()
		case "sampling":
			c.Sampling = r.value()
		case "endpoint":
			c.Endpoint = r.str()
		case "finish_reason":
			c.FinishReason = r.str()
		case "usage":
			if !r.null() {
				c.Usage = &CallUsage{}
				c.Usage.decode(r)
			}
		case "time":
			c.Time = Span{}
			for range r.mapLen() {
				switch string(r.key()) {
				case "start":
					c.Time.Start = r.f64()
				case "end":
					c.Time.End = r.f64()
				default:
					r.skip()
				}
			}
		case "error":
			if !r.null() {
				c.Error = &Error{}
				c.Error.decode(r)
			}
		case "policy":
			c.Policy = r.value()
		case "acp":
			c.ACP = r.value()
		default:
			c.Extra.set(k, r.value())
		}
	}
}

func (u *CallUsage) decode(r *reader) {
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "prompt_tokens":
			u.PromptTokens = r.i64()
		case "completion_tokens":
			u.CompletionTokens = r.i64()
		case "cached_input_tokens":
			u.CachedInputTokens = r.optInt()
		case "reasoning_tokens":
			u.ReasoningTokens = r.optInt()
		case "cost":
			u.Cost = r.optFloat()
		default:
			u.Extra.set(k, r.value())
		}
	}
}

func (e *Error) decode(r *reader) {
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "type":
			e.Type = r.str()
		case "message":
			e.Message = r.str()
		case "status_code":
			e.StatusCode = r.i64()
		case "traceback":
			e.Traceback = r.str()
		default:
			e.Extra.set(k, r.value())
		}
	}
}
