package wire

import "slices"

// infoKey is the key under a trace's info that a merged episode uses.
const infoKey = "wevalr"

// marked is the position of the selected trace, -1 where none is marked.
func (e *Episode) marked() int {
	for i := range e.Traces {
		if on, _ := e.Traces[i].Info.Get(infoKey, "selected").Any().(bool); on {
			return i
		}
	}
	return -1
}

// judged are the traces that decide the outcome.
func (e *Episode) judged() []Trace {
	if i := e.marked(); i >= 0 {
		return e.Traces[i : i+1]
	}
	return e.Traces
}

// Selected is the trace that a merged episode marks, else the first; nil where there is none. It
// points into the episode.
func (e *Episode) Selected() *Trace {
	if i := e.marked(); i >= 0 {
		return &e.Traces[i]
	}
	if len(e.Traces) == 0 {
		return nil
	}
	return &e.Traces[0]
}

// Path is the conversation from the root to the last sampled node (to the last node where none was
// sampled). It points into the trace.
func (t *Trace) Path() []*Node {
	at := len(t.Nodes) - 1
	for i := at; i >= 0; i-- {
		if t.Nodes[i].Sampled {
			at = i
			break
		}
	}
	depth := 0
	for i := at; i >= 0; i = t.parent(i) {
		depth++
	}
	path := make([]*Node, depth)
	for i := at; i >= 0; i = t.parent(i) {
		depth--
		path[depth] = &t.Nodes[i]
	}
	return path
}

// parent is the parent of node i; what does not point backwards counts as no parent, so that no
// graph is walked for ever.
func (t *Trace) parent(i int) int {
	if p := t.Nodes[i].Parent; p < i {
		return p
	}
	return -1
}

// last is the last assistant message on the path.
func (t *Trace) last() *Message {
	path := t.Path()
	for _, n := range slices.Backward(path) {
		if n.Message.Role == "assistant" {
			return &n.Message
		}
	}
	return nil
}

// Completion is the text of the last assistant message on the path: text parts joined, reasoning
// left out, nil = "".
func (t *Trace) Completion() string {
	if m := t.last(); m != nil {
		return m.Content.String()
	}
	return ""
}

// Merge makes one episode of those that a plugin's rollout used: all traces in order, the selected
// episode's own selected trace marked by info.wevalr.selected. Head and outcome are the selected
// episode's, token counts are sums. Traces are copied shallowly: what they point to is shared.
// No episodes give nil; a selection out of range marks none and takes the first one's head.
func Merge(episodes []*Episode, selected int) *Episode {
	if len(episodes) == 0 {
		return nil
	}
	ok := selected >= 0 && selected < len(episodes)
	head := episodes[0]
	if ok {
		head = episodes[selected]
	}
	out := *head
	out.Traces = nil
	out.NumInputTokens, out.NumOutputTokens, out.NumTotalTokens = 0, 0, 0
	for i, e := range episodes {
		mark := e.Selected()
		for j := range e.Traces {
			t := e.Traces[j]
			switch {
			case ok && i == selected && mark == &e.Traces[j]:
				t.Info = t.Info.with(infoKey, mustValue(map[string]any{"selected": true}))
			case t.Info.Get(infoKey) != nil:
				t.Info = t.Info.with(infoKey, nil)
			}
			out.Traces = append(out.Traces, t)
		}
		out.NumInputTokens += e.NumInputTokens
		out.NumOutputTokens += e.NumOutputTokens
		out.NumTotalTokens += e.NumTotalTokens
	}
	return &out
}
