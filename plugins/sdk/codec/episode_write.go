package codec

import "github.com/wevalr/wevalr/plugins/abi"

// WriteEpisode appends the view of an episode.
func WriteEpisode(w *Writer, e abi.Episode) {
	f := w.begin()
	if f.put(e.Completion != "", abi.ViewCompletion) {
		w.String(e.Completion)
	}
	if f.put(len(e.Messages) > 0, abi.ViewMessages) {
		writeList(w, e.Messages, writeMessage)
	}
	if f.put(len(e.Info) > 0, abi.ViewInfo) {
		w.AnyMap(e.Info)
	}
	if f.put(e.StopCondition != "", abi.ViewStopCondition) {
		w.String(e.StopCondition)
	}
	if f.put(len(e.Errors) > 0, abi.ViewErrors) {
		writeList(w, e.Errors, writeTraceError)
	}
	if f.put(len(e.Rewards) > 0, abi.ViewRewards) {
		writeMap(w, e.Rewards, writeReward)
	}
	if f.put(len(e.Metrics) > 0, abi.ViewMetrics) {
		writeMap(w, e.Metrics, writeFloatPtr)
	}
	if f.put(e.Usage != nil, abi.ViewUsage) {
		writeUsage(w, e.Usage)
	}
	if f.put(len(e.Timing) > 0, abi.ViewTiming) {
		w.AnyMap(e.Timing)
	}
	if f.put(len(e.ToolCalls) > 0, abi.ViewToolCalls) {
		writeList(w, e.ToolCalls, writeToolCall)
	}
	if f.put(len(e.Tokens) > 0, abi.ViewTokens) {
		writeList(w, e.Tokens, writeTokens)
	}
	if f.put(len(e.Traces) > 0, abi.ViewTraces) {
		writeList(w, e.Traces, WriteEpisode)
	}
}

func writeMessage(w *Writer, m abi.Message) {
	f := w.begin()
	f.put(true, "role")
	w.String(m.Role)
	f.put(true, "content")
	w.String(m.Content)
	if f.put(m.Reasoning != "", "reasoning") {
		w.String(m.Reasoning)
	}
	if f.put(m.Name != "", "name") {
		w.String(m.Name)
	}
	if f.put(m.ToolCallID != "", "tool_call_id") {
		w.String(m.ToolCallID)
	}
	if f.put(len(m.ToolCalls) > 0, "tool_calls") {
		writeList(w, m.ToolCalls, writeToolCall)
	}
}

func writeToolCall(w *Writer, c abi.ToolCall) {
	f := w.begin()
	f.put(true, "id")
	w.String(c.ID)
	f.put(true, "name")
	w.String(c.Name)
	f.put(true, "arguments")
	w.String(c.Arguments)
}

func writeTraceError(w *Writer, e abi.TraceError) {
	f := w.begin()
	f.put(true, "type")
	w.String(e.Type)
	f.put(true, "message")
	w.String(e.Message)
	if f.put(e.StatusCode != 0, "status_code") {
		w.Int(e.StatusCode)
	}
}

func writeReward(w *Writer, r *abi.Reward) {
	if r == nil {
		w.Nil()
		return
	}
	f := w.begin()
	f.put(true, "score")
	w.Float(r.Score)
	f.put(true, "weight")
	w.Float(r.Weight)
}

func writeUsage(w *Writer, u *abi.Usage) {
	f := w.begin()
	f.put(true, "input_tokens")
	w.Int(u.InputTokens)
	f.put(true, "output_tokens")
	w.Int(u.OutputTokens)
	if f.put(u.Cost != nil, "cost") {
		w.Float(*u.Cost)
	}
}

func writeTokens(w *Writer, t abi.NodeTokens) {
	f := w.begin()
	f.put(true, "ids")
	writeList(w, t.IDs, (*Writer).Int)
	f.put(true, "mask")
	writeList(w, t.Mask, (*Writer).Bool)
	if f.put(len(t.Logprobs) > 0, "logprobs") {
		writeList(w, t.Logprobs, (*Writer).Float)
	}
}

func writeFloatPtr(w *Writer, v *float64) {
	if v == nil {
		w.Nil()
		return
	}
	w.Float(*v)
}
