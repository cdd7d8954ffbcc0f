package codec

import "github.com/wevalr/wevalr/plugins/abi"

// ReadEpisode reads the view of an episode.
func ReadEpisode(r *Reader) (e abi.Episode) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case abi.ViewCompletion:
			e.Completion = r.String()
		case abi.ViewMessages:
			e.Messages = list(r, readMessage)
		case abi.ViewInfo:
			e.Info = r.AnyMap()
		case abi.ViewStopCondition:
			e.StopCondition = r.String()
		case abi.ViewErrors:
			e.Errors = list(r, readTraceError)
		case abi.ViewRewards:
			e.Rewards = dict(r, readReward)
		case abi.ViewMetrics:
			e.Metrics = dict(r, (*Reader).FloatPtr)
		case abi.ViewUsage:
			e.Usage = readUsage(r)
		case abi.ViewTiming:
			e.Timing = r.AnyMap()
		case abi.ViewToolCalls:
			e.ToolCalls = list(r, readToolCall)
		case abi.ViewTokens:
			e.Tokens = list(r, readTokens)
		case abi.ViewTraces:
			e.Traces = list(r, ReadEpisode)
		default:
			r.Skip()
		}
	}
	return e
}

func dict[T any](r *Reader, read func(*Reader) T) map[string]T {
	if r.Nil() {
		return nil
	}
	n := r.MapLen()
	m := make(map[string]T, min(n, 1024))
	for range n {
		k := r.String()
		v := read(r)
		if r.err != nil {
			return nil
		}
		m[k] = v
	}
	return m
}

func readMessage(r *Reader) (m abi.Message) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "role":
			m.Role = r.String()
		case "content":
			m.Content = r.String()
		case "reasoning":
			m.Reasoning = r.String()
		case "name":
			m.Name = r.String()
		case "tool_call_id":
			m.ToolCallID = r.String()
		case "tool_calls":
			m.ToolCalls = list(r, readToolCall)
		default:
			r.Skip()
		}
	}
	return m
}

func readToolCall(r *Reader) (c abi.ToolCall) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "id":
			c.ID = r.String()
		case "name":
			c.Name = r.String()
		case "arguments":
			c.Arguments = r.String()
		default:
			r.Skip()
		}
	}
	return c
}

func readTraceError(r *Reader) (e abi.TraceError) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "type":
			e.Type = r.String()
		case "message":
			e.Message = r.String()
		case "status_code":
			e.StatusCode = r.Int()
		default:
			r.Skip()
		}
	}
	return e
}

func readReward(r *Reader) *abi.Reward {
	if r.Nil() {
		return nil
	}
	var w abi.Reward
	for range r.MapLen() {
		switch string(r.Key()) {
		case "score":
			w.Score = r.Float()
		case "weight":
			w.Weight = r.Float()
		default:
			r.Skip()
		}
	}
	return &w
}

func readUsage(r *Reader) *abi.Usage {
	if r.Nil() {
		return nil
	}
	var u abi.Usage
	for range r.MapLen() {
		switch string(r.Key()) {
		case "input_tokens":
			u.InputTokens = r.Int()
		case "output_tokens":
			u.OutputTokens = r.Int()
		case "cost":
			u.Cost = r.FloatPtr()
		default:
			r.Skip()
		}
	}
	return &u
}

func readTokens(r *Reader) (t abi.NodeTokens) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "ids":
			t.IDs = list(r, (*Reader).Int)
		case "mask":
			t.Mask = list(r, (*Reader).Bool)
		case "logprobs":
			t.Logprobs = list(r, (*Reader).Float)
		default:
			r.Skip()
		}
	}
	return t
}
