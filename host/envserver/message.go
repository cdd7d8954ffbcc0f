package envserver

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wevalr/wevalr/host/wire"
)

// message is one message of a conversation, in verifiers' vocabulary.
type message struct {
	role       string
	content    any // string, nil (assistant only) or a list of parts, each a map
	reasoning  *string
	toolCalls  []toolCall
	state      []any  // opaque reasoning state (reasoning_details)
	toolCallID string // tool only
	name       string // tool only
	refusal    string
}

// toolCall is a function call the model asked for; arguments is its text, unread.
type toolCall struct {
	id, kind, name string
	arguments      string
}

// text is the message's text without images.
func (m *message) text() string {
	if s, ok := m.content.(string); ok {
		return s
	}
	parts, _ := m.content.([]any)
	var out string
	for _, p := range parts {
		part, _ := p.(map[string]any)
		if t, ok := part["text"].(string); ok {
			if out != "" {
				out += "\n"
			}
			out += t
		}
	}
	return out
}

// row is the message as a task's data holds it: every field of verifiers' model, nil where unset.
func (m *message) row() map[string]any {
	out := map[string]any{"role": m.role, "content": m.content}
	switch m.role {
	case "assistant":
		out["reasoning_content"], out["tool_calls"], out["provider_state"] = nil, nil, nil
		if m.reasoning != nil {
			out["reasoning_content"] = *m.reasoning
		}
		if len(m.toolCalls) > 0 {
			calls := make([]any, len(m.toolCalls))
			for i, c := range m.toolCalls {
				calls[i] = map[string]any{"id": c.id, "type": c.kind, "name": c.name, "namespace": nil, "arguments": c.arguments}
			}
			out["tool_calls"] = calls
		}
		if len(m.state) > 0 {
			out["provider_state"] = m.state
		}
	case "tool":
		out["tool_call_id"], out["name"] = m.toolCallID, nil
		if m.name != "" {
			out["name"] = m.name
		}
	}
	return out
}

// record is the message as a trace holds it. Its content must be text or nil.
func (m *message) record() wire.Message {
	out := wire.Message{Role: m.role, Reasoning: m.reasoning, ToolCallID: m.toolCallID, Name: m.name}
	if s, ok := m.content.(string); ok {
		out.Content = wire.Text(s)
	}
	for _, c := range m.toolCalls {
		out.ToolCalls = append(out.ToolCalls, wire.ToolCall{ID: c.id, Type: c.kind, Name: c.name, Arguments: c.arguments})
	}
	if len(m.state) > 0 {
		out.ProviderState = value(m.state)
	}
	if m.refusal != "" {
		out.Extra = wire.Extra{{Name: "refusal", Value: value(m.refusal)}}
	}
	return out
}

// records are the messages as a trace holds them. Content in parts has no constructor in wire, so
// such messages go the way of its decoder.
func records(messages []message) ([]wire.Message, error) {
	out := make([]wire.Message, 0, len(messages))
	for i := range messages {
		if _, parts := messages[i].content.([]any); !parts {
			out = append(out, messages[i].record())
			continue
		}
		delta, err := wire.ValueOf(map[string]any{
			"trace": "x", "open": map[string]any{"id": "x", "task": map[string]any{"type": taskType, "data": map[string]any{}}},
			"pending": []any{messages[i].row()},
		})
		if err != nil {
			return nil, err
		}
		for _, t := range wire.DecodePartial([][]byte{delta}) {
			out = append(out, t.Pending...)
		}
	}
	return out, nil
}

// request is the message as an OpenAI-compatible endpoint takes it.
func (m *message) request() map[string]any {
	out := map[string]any{"role": m.role, "content": m.content}
	switch m.role {
	case "assistant":
		if m.content == nil && len(m.toolCalls) == 0 {
			out["content"] = "" // strict providers reject null without tool calls
		}
		switch {
		case len(m.state) > 0:
			out["reasoning_details"] = m.state
		case m.reasoning != nil:
			out["reasoning_content"] = *m.reasoning
		}
		if len(m.toolCalls) > 0 {
			calls := make([]any, len(m.toolCalls))
			for i, c := range m.toolCalls {
				arg := "arguments"
				if c.kind == "custom" {
					arg = "input"
				}
				calls[i] = map[string]any{"id": c.id, "type": c.kind, c.kind: map[string]any{"name": c.name, arg: c.arguments}}
			}
			out["tool_calls"] = calls
		}
	case "tool":
		out["tool_call_id"] = m.toolCallID
		if m.name != "" {
			out["name"] = m.name
		}
	}
	return out
}

// parseMessage reads one message of a task's prompt: verifiers' shape, or OpenAI's.
func parseMessage(v any) (message, error) {
	raw, ok := v.(map[string]any)
	if !ok {
		return message{}, errors.New("Input should be a valid dictionary") //nolint:staticcheck // verifiers' own words, which its users know
	}
	m := message{}
	m.role, _ = raw["role"].(string)
	switch m.role {
	case "system", "user", "assistant", "tool":
	default:
		return message{}, fmt.Errorf("role should be 'system', 'user', 'assistant' or 'tool', got %q", m.role)
	}
	var err error
	if m.content, err = parseContent(raw["content"], m.role == "assistant"); err != nil {
		return message{}, err
	}
	if m.role == "tool" {
		m.toolCallID, _ = raw["tool_call_id"].(string)
		m.name, _ = raw["name"].(string)
		if m.toolCallID == "" {
			return message{}, errors.New("tool_call_id is missing")
		}
	}
	if m.role != "assistant" {
		return m, nil
	}
	if s, ok := raw["reasoning_content"].(string); ok {
		m.reasoning = &s
	}
	m.state, _ = raw["provider_state"].([]any)
	calls, _ := raw["tool_calls"].([]any)
	for i, c := range calls {
		tc, ok := parseToolCall(c)
		if !ok {
			return message{}, fmt.Errorf("tool_calls.%d has no name", i)
		}
		m.toolCalls = append(m.toolCalls, tc)
	}
	return m, nil
}

func parseContent(v any, nullable bool) (any, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case nil:
		if nullable {
			return nil, nil
		}
		return nil, errors.New("content is missing")
	case []any:
		parts := make([]any, len(v))
		for i, p := range v {
			if parts[i] = parsePart(p); parts[i] == nil {
				return nil, fmt.Errorf("content.%d should be a text or an image_url part", i)
			}
		}
		if nullable {
			return (&message{content: parts}).text(), nil // an assistant's content is text
		}
		return parts, nil
	default:
		return nil, errors.New("content should be a string or a list of parts")
	}
}

// parsePart keeps of a content part what verifiers keeps; nil is any other part.
func parsePart(v any) any {
	part, _ := v.(map[string]any)
	switch part["type"] {
	case "text":
		if s, ok := part["text"].(string); ok {
			return map[string]any{"type": "text", "text": s}
		}
	case "image_url":
		src, _ := part["image_url"].(map[string]any)
		if s, ok := src["url"].(string); ok {
			return map[string]any{"type": "image_url", "image_url": map[string]any{"url": s}}
		}
	}
	return nil
}

func parseToolCall(v any) (toolCall, bool) {
	raw, _ := v.(map[string]any)
	c := toolCall{kind: "function"}
	c.id, _ = raw["id"].(string)
	if k, ok := raw["type"].(string); ok && k == "custom" {
		c.kind = k
	}
	if nested, ok := raw[c.kind].(map[string]any); ok {
		raw = nested
	}
	c.name, _ = raw["name"].(string)
	c.arguments = argumentText(raw["arguments"])
	if in, ok := raw["input"]; ok && c.kind == "custom" {
		c.arguments = argumentText(in)
	}
	return c, c.name != ""
}

// argumentText keeps a string as it is and writes anything else as JSON.
func argumentText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
