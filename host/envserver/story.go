package envserver

import (
	"strings"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// story is a trace while it is being told.
type story struct {
	h        *handler
	t        *task
	c        *call
	id       string
	task     wire.Value // as open and head hold it
	sampling map[string]any
	endpoint string
	start    float64
	call     map[string]any
	nodes    int
	ok       bool
	input    int64
	output   int64
}

func newStory(h *handler, t *task, c *call) (*story, error) {
	s := &story{h: h, t: t, c: c, id: newID(), start: unixNow(), endpoint: "/chat/completions"}
	if strings.HasPrefix(c.model, offlinePrefix) {
		s.endpoint = c.model
	}
	c.traceID = s.id
	s.sampling = map[string]any{"temperature": nil, "top_p": nil, "reasoning_effort": nil, "max_tokens": nil}
	flatten(s.sampling, c.sampling)
	key := t.hash
	if c.tag != nil && c.tag.Key != "" {
		key = c.tag.Key
	}
	var err error
	s.task, err = wire.ValueOf(map[string]any{"type": taskType, "data": t.data, "key": key, "hash": t.hash})
	return s, err
}

// opening is the first delta: the task, the agent, and every field at its beginning.
func (s *story) opening() map[string]any {
	return map[string]any{
		"open": map[string]any{
			"version":   int64(1),
			"id":        s.id,
			"verifiers": map[string]any{"version": s.h.version, "commit": nil},
			"task":      s.task,
		},
		"set": map[string]any{
			"agent": s.agent(), "tools": []any{}, "mm_token_type_id_map": map[string]any{},
			"rewards": map[string]any{}, "metrics": map[string]any{}, "info": map[string]any{}, "root_reply": nil,
			"is_completed": false, "ok": false, "stop_condition": nil, "is_timeout": false,
			"timing":           s.timing(0, 0, false),
			"num_input_tokens": int64(0), "num_output_tokens": int64(0), "num_total_tokens": int64(0),
		},
	}
}

// agent is the configuration that verifiers' AgentConfig takes; a runtime there is none.
func (s *story) agent() map[string]any {
	var client any
	if s.endpoint != s.c.model {
		client = s.c.client.record()
	}
	return map[string]any{
		"config": map[string]any{
			"harness": map[string]any{
				"id": "wevalr", "env": map[string]any{}, "forward_env": []any{}, "mcp_header_env": map[string]any{},
				"tool_timeout": 600.0, "disabled_tools": nil, "skills": []any{},
			},
			"runtime": map[string]any{"type": "subprocess"},
			"model":   s.c.model, "client": client, "sampling": s.sampling,
			"max_turns": int64(1), "max_input_tokens": nil, "max_output_tokens": nil, "max_total_tokens": nil,
			"timeout":        map[string]any{"setup": nil, "rollout": nil, "finalize": nil, "scoring": nil},
			"retries":        map[string]any{"max_retries": int64(0), "rules": []any{}},
			"network_notice": false,
		},
		"runtime": nil, "name": "agent", "trainable": true,
	}
}

func (s *story) pending() []any {
	out := make([]any, len(s.t.messages))
	for i := range s.t.messages {
		out[i] = s.t.messages[i].record()
	}
	return out
}

// finish tells of an answer.
func (s *story) finish(req *zmqio.Request, done *completion) error {
	now := unixNow()
	nodes := make([]any, 0, len(s.t.messages)+1)
	for i := range s.t.messages {
		nodes = append(nodes, node(i, &s.t.messages[i], now, false))
	}
	nodes = append(nodes, node(len(nodes), &done.message, now, true))
	s.nodes, s.ok = len(nodes), true
	s.call["node"] = int64(len(nodes) - 1)
	if done.finish != "" {
		s.call["finish_reason"] = done.finish
	} else if done.raw != "" {
		s.call["finish_reason_raw"] = done.raw // verifiers knows three reasons; this is another
	}
	if u := done.usage; u != nil {
		s.call["usage"] = u.record()
		s.input, s.output = u.input(), u.completion
	}
	err := s.send(req, map[string]any{
		"nodes": nodes, "calls": []any{s.call},
		"set": map[string]any{"num_input_tokens": s.input, "num_output_tokens": s.output, "num_total_tokens": s.input + s.output},
	})
	if err != nil {
		return err
	}
	set := map[string]any{
		"rewards": map[string]any{}, "metrics": map[string]any{}, "is_completed": true, "ok": true,
		"stop_condition": "agent_completed", "timing": s.timing(now, s.modelTime(), true),
	}
	if done.refused != "" {
		set["info"] = map[string]any{"wevalr": map[string]any{"refused": done.refused}}
	}
	return s.send(req, map[string]any{"set": set})
}

// fail tells of a call that brought no answer.
func (s *story) fail(req *zmqio.Request, failed *callError) error {
	record := map[string]any{"type": "ProviderError", "message": failed.msg, "status_code": int64(failed.status), "traceback": nil}
	s.call["error"] = record
	if err := s.send(req, map[string]any{"calls": []any{s.call}, "pending": []any{}}); err != nil {
		return err
	}
	return s.send(req, map[string]any{
		"errors": []any{record},
		"set": map[string]any{
			"is_completed": true, "stop_condition": "provider_error", "timing": s.timing(unixNow(), s.modelTime(), false),
		},
	})
}

func (s *story) modelTime() float64 {
	span, _ := s.call["time"].(map[string]any)
	start, _ := span["start"].(float64)
	end, _ := span["end"].(float64)
	return end - start
}

// timing: nothing is set up here, so boot and setup are over when they begin; finalize and scoring
// likewise, unless they were never reached.
func (s *story) timing(end, model float64, reached bool) map[string]any {
	var last float64
	if reached {
		last = end
	}
	harness := 0.0
	if end > 0 {
		harness = max(0, end-s.start-model)
	}
	return map[string]any{
		"start": s.start, "boot": span(s.start, s.start), "setup": span(s.start, s.start),
		"agent": map[string]any{
			"start": s.start, "end": end,
			"model": map[string]any{"duration": model}, "harness": map[string]any{"duration": harness},
		},
		"finalize": span(last, last), "scoring": span(last, last),
	}
}

func span(start, end float64) map[string]any { return map[string]any{"start": start, "end": end} }

// reply ends the run: the episode without its trace, which has been streamed.
func (s *story) reply() ([]byte, error) {
	return wire.ValueOf(map[string]any{
		"success": true, "error": nil,
		"head": map[string]any{
			"id": newID(), "env": map[string]any{"id": "wevalr", "name": nil}, "task": s.task,
			"group": nil, "run": nil, "ok": s.ok, "is_timeout": false, "errors": []any{},
			"num_input_tokens": s.input, "num_output_tokens": s.output, "num_total_tokens": s.input + s.output,
		},
		"traces": []any{map[string]any{"id": s.id, "nodes": int64(s.nodes), "calls": int64(1)}},
	})
}

// node is a message in the trace's graph, a chain here: each hangs on the one before.
func node(i int, m *message, at float64, sampled bool) map[string]any {
	var parent any
	if i > 0 {
		parent = int64(i - 1)
	}
	return map[string]any{
		"parent": parent, "semantic_parents": []any{}, "message": m.record(), "sampled": sampled, "timestamp": at,
		"token_ids": []any{}, "mask": []any{}, "is_content": []any{}, "logprobs": []any{},
		"advantages": nil, "reference_logprobs": nil, "trainer_logprobs": nil, "entropies": nil,
		"loss_weights": nil, "routed_experts": nil, "sampling_mask": nil,
	}
}

// callRecord is the model call, to be completed with how it ended. tries is wevalr's own field.
func callRecord(c *call, endpoint string, sampling map[string]any, start, end float64, tries int) map[string]any {
	return map[string]any{
		"node": nil, "model": c.model, "sampling": sampling, "endpoint": endpoint,
		"finish_reason": nil, "usage": nil, "time": span(start, end),
		"error": nil, "policy": nil, "acp": nil, "tries": int64(tries),
	}
}

func (u *usage) record() map[string]any {
	out := map[string]any{
		"prompt_tokens": u.prompt, "completion_tokens": u.completion,
		"cached_input_tokens": nil, "reasoning_tokens": nil, "cost": nil,
	}
	if u.cached != nil {
		out["cached_input_tokens"] = *u.cached
	}
	if u.reasoning != nil {
		out["reasoning_tokens"] = *u.reasoning
	}
	if u.cost != nil {
		out["cost"] = *u.cost
	}
	return out
}
