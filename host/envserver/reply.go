package envserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/wevalr/wevalr/host/wire"
)

// chatReply is what is read of a chat completion; everything may be missing but a message.
type chatReply struct {
	Choices []struct {
		Message      *chatMessage `json:"message"`
		FinishReason string       `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type chatMessage struct {
	Content          any    `json:"content"`
	Refusal          string `json:"refusal"`
	Reasoning        any    `json:"reasoning"`         // vLLM, Together, OpenRouter
	ReasoningContent any    `json:"reasoning_content"` // DeepSeek, Qwen, SGLang
	ReasoningDetails any    `json:"reasoning_details"` // OpenRouter, MiniMax
	ToolCalls        []any  `json:"tool_calls"`
}

type chatUsage struct {
	PromptTokens     *float64 `json:"prompt_tokens"`
	CompletionTokens *float64 `json:"completion_tokens"`
	PromptDetails    *struct {
		Cached *float64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails *struct {
		Reasoning *float64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Cost *float64 `json:"cost"`
}

// decodeReply reads a 2xx body. What is no chat completion is a 502, as verifiers has it.
func decodeReply(body []byte) (completion, error) {
	var r chatReply
	if err := json.Unmarshal(body, &r); err != nil {
		return completion{}, failCall(http.StatusBadGateway, "malformed upstream response: %v", err)
	}
	if len(r.Error) > 0 && !bytes.Equal(r.Error, []byte("null")) {
		return completion{}, failCall(statusInside(r.Error), "upstream 200 with an error: %s", string(r.Error[:min(len(r.Error), maxMasked)]))
	}
	if len(r.Choices) == 0 || r.Choices[0].Message == nil {
		return completion{}, failCall(http.StatusBadGateway, "malformed upstream response: no choices[0].message")
	}
	choice := r.Choices[0]
	m, err := choice.Message.read()
	if err != nil {
		return completion{}, failCall(http.StatusBadGateway, "malformed upstream response: %v", err)
	}
	done := completion{message: m, usage: readUsage(r.Usage)}
	switch choice.FinishReason {
	case "stop", "length", "tool_calls":
		done.finish = choice.FinishReason
	default:
		done.raw = choice.FinishReason
	}
	switch {
	case choice.FinishReason == "content_filter":
		done.filter()
	case m.refusal != "":
		done.refused = "refusal"
	}
	return done, nil
}

// filter marks an answer as withheld. verifiers' finish reasons have none for that, so the message
// carries it as a refusal does; info.wevalr tells which it was.
func (c *completion) filter() {
	c.refused = "content_filter"
	if c.message.refusal == "" {
		c.message.refusal = "withheld by the provider's content filter"
	}
}

func (c *chatMessage) read() (message, error) {
	m := message{role: "assistant", refusal: c.Refusal}
	m.state, _ = c.ReasoningDetails.([]any)
	switch v := c.Content.(type) {
	case nil:
	case string:
		m.content = v
	case []any:
		m.readParts(v)
	default:
		return m, errors.New("message.content is neither a string nor a list")
	}
	if m.content == nil && m.refusal != "" {
		m.content = m.refusal // the words that were said, for whoever reads or scores them
	}
	for _, v := range [...]any{c.Reasoning, c.ReasoningContent, detailText(m.state)} {
		if s, ok := v.(string); ok && s != "" {
			m.reasoning = &s
			break
		}
	}
	for i, v := range c.ToolCalls {
		tc, ok := parseToolCall(v)
		if !ok {
			return m, fmt.Errorf("message.tool_calls[%d] has no name", i)
		}
		m.toolCalls = append(m.toolCalls, tc)
	}
	return m, nil
}

// readParts joins the text of content in parts; an answer's content is text in verifiers.
func (m *message) readParts(parts []any) {
	var text strings.Builder
	for _, v := range parts {
		part, _ := v.(map[string]any)
		switch part["type"] {
		case "text", "output_text":
			s, _ := part["text"].(string)
			text.WriteString(s)
		case "refusal":
			m.refusal, _ = part["refusal"].(string)
		}
	}
	if text.String() != "" || m.refusal == "" {
		m.content = text.String()
	}
}

// detailText is the readable part of reasoning_details.
func detailText(details []any) string {
	var out string
	for _, d := range details {
		part, _ := d.(map[string]any)
		s, _ := part["text"].(string)
		if s == "" {
			s, _ = part["summary"].(string)
		}
		if s != "" && out != "" {
			out += "\n"
		}
		out += s
	}
	return out
}

// readUsage is nil when the provider did not count, or not so that it can be understood, rather
// than a zero that looks counted.
func readUsage(raw json.RawMessage) *wire.CallUsage {
	var u chatUsage
	if len(raw) == 0 || json.Unmarshal(raw, &u) != nil {
		return nil
	}
	prompt, completion := count(u.PromptTokens), count(u.CompletionTokens)
	if prompt == nil || completion == nil {
		return nil
	}
	out := &wire.CallUsage{PromptTokens: *prompt, CompletionTokens: *completion, Cost: u.Cost}
	if d := u.PromptDetails; d != nil {
		if out.CachedInputTokens = count(d.Cached); out.CachedInputTokens != nil {
			out.PromptTokens = max(0, out.PromptTokens-*out.CachedInputTokens)
		}
	}
	if d := u.CompletionDetails; d != nil {
		out.ReasoningTokens = count(d.Reasoning)
	}
	return out
}

func count(f *float64) *int64 {
	if f == nil || *f < 0 || *f > 1<<53 {
		return nil
	}
	n := int64(*f)
	return &n
}

// statusInside is the status that a gateway wrapped into a 200; 502 when it says none.
func statusInside(raw json.RawMessage) int {
	var e struct {
		Code any `json:"code"`
	}
	if json.Unmarshal(raw, &e) == nil {
		if f, ok := e.Code.(float64); ok && f >= 400 && f < 600 {
			return int(f)
		}
	}
	return http.StatusBadGateway
}

func cut(s string) string {
	if len(s) > maxErrorText {
		return s[:maxErrorText] + "…"
	}
	return s
}

// mask takes secrets out of everything a provider wrote.
func (c *completion) mask(m *masker) {
	c.raw = m.mask(c.raw)
	msg := &c.message
	msg.content = m.maskAny(msg.content)
	msg.reasoning = m.maskPtr(msg.reasoning)
	msg.refusal = m.mask(msg.refusal)
	msg.state, _ = m.maskAny(msg.state).([]any)
	for i := range msg.toolCalls {
		tc := &msg.toolCalls[i]
		tc.id, tc.name, tc.arguments = m.mask(tc.id), m.mask(tc.name), m.mask(tc.arguments)
	}
}
