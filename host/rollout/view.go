package rollout

import (
	"slices"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

// View is what a plugin sees of an episode: the named parts (abi.Views) and nothing more. Shapes are
// fixed by abi and pinned by a golden each.
func View(e *wire.Episode, names []string) *abi.Episode {
	v := &abi.Episode{}
	if t := e.Selected(); t != nil {
		fillView(v, t, names)
	}
	if slices.Contains(names, abi.ViewErrors) {
		v.Errors = append(v.Errors, traceErrors(e.Errors)...)
	}
	if slices.Contains(names, abi.ViewUsage) {
		v.Usage = viewUsage(e)
	}
	if slices.Contains(names, abi.ViewTraces) {
		v.Traces = make([]abi.Episode, len(e.Traces))
		for i := range e.Traces {
			fillView(&v.Traces[i], &e.Traces[i], names)
		}
	}
	return v
}

// fillView takes the parts that belong to one trace.
func fillView(v *abi.Episode, t *wire.Trace, names []string) {
	for _, name := range names {
		switch name {
		case abi.ViewCompletion:
			v.Completion = t.Completion()
		case abi.ViewMessages:
			v.Messages = messages(t.Path())
		case abi.ViewInfo:
			v.Info = t.Info.Map()
		case abi.ViewStopCondition:
			v.StopCondition = t.StopCondition
		case abi.ViewErrors:
			v.Errors = traceErrors(t.Errors)
		case abi.ViewRewards:
			v.Rewards = viewRewards(t.Rewards)
		case abi.ViewMetrics:
			v.Metrics = t.Metrics
		case abi.ViewTiming:
			v.Timing = t.Timing.Map()
		case abi.ViewToolCalls:
			v.ToolCalls = nil
			for _, n := range t.Path() {
				v.ToolCalls = append(v.ToolCalls, toolCalls(n.Message.ToolCalls)...)
			}
		case abi.ViewTokens:
			v.Tokens = tokens(t.Path())
		}
	}
}

func messages(path []*wire.Node) []abi.Message {
	out := make([]abi.Message, len(path))
	for i, n := range path {
		m := &n.Message
		out[i] = abi.Message{
			Role: m.Role, Content: m.Content.String(), Name: m.Name,
			ToolCallID: m.ToolCallID, ToolCalls: toolCalls(m.ToolCalls),
		}
		if m.Reasoning != nil {
			out[i].Reasoning = *m.Reasoning
		}
	}
	return out
}

func toolCalls(list []wire.ToolCall) []abi.ToolCall {
	var out []abi.ToolCall
	for _, c := range list {
		out = append(out, abi.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return out
}

func traceErrors(list []wire.Error) []abi.TraceError {
	var out []abi.TraceError
	for _, e := range list {
		out = append(out, abi.TraceError{Type: e.Type, Message: e.Message, StatusCode: e.StatusCode})
	}
	return out
}

func viewRewards(all map[string]*wire.Reward) map[string]*abi.Reward {
	if all == nil {
		return nil
	}
	out := make(map[string]*abi.Reward, len(all))
	for name, r := range all {
		if r == nil {
			out[name] = nil
			continue
		}
		out[name] = &abi.Reward{Score: r.Score, Weight: r.Weight}
	}
	return out
}

func viewUsage(e *wire.Episode) *abi.Usage {
	u := e.Usage()
	return &abi.Usage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: u.Cost}
}

func tokens(path []*wire.Node) []abi.NodeTokens {
	out := make([]abi.NodeTokens, len(path))
	for i, n := range path {
		ids := make([]int64, len(n.TokenIDs))
		for j, id := range n.TokenIDs {
			ids[j] = int64(id)
		}
		out[i] = abi.NodeTokens{IDs: ids, Mask: append([]bool{}, n.Mask...), Logprobs: n.Logprobs}
	}
	return out
}
