package envserver

import (
	"strings"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// story is an episode while it is being told: one trace, of which each delta tells what is new.
type story struct {
	h     *handler
	t     *task
	c     *call
	ep    wire.Episode
	trace wire.Trace
	call  wire.ModelCall
	start float64
}

func newStory(h *handler, t *task, c *call) (*story, error) {
	s := &story{h: h, t: t, c: c, start: unixNow()}
	c.traceID = newID()
	data, err := wire.ValueOf(t.data)
	if err != nil {
		return nil, err
	}
	task := wire.Task{Type: taskType, Data: data, Key: t.hash, Hash: t.hash}
	if c.tag != nil && c.tag.Key != "" {
		task.Key = c.tag.Key
	}
	sampling := map[string]any{"temperature": nil, "top_p": nil, "reasoning_effort": nil, "max_tokens": nil}
	flatten(sampling, c.sampling)
	s.call = wire.ModelCall{Node: -1, Model: c.model, Endpoint: "/chat/completions"}
	if s.offline() {
		s.call.Endpoint = c.model
	}
	if s.call.Sampling, err = wire.ValueOf(sampling); err != nil {
		return nil, err
	}
	s.trace = wire.Trace{Version: 1, ID: c.traceID, Verifiers: h.fixed.version, Task: task, Agent: s.agent()}
	s.ep = wire.Episode{ID: newID(), Env: h.fixed.env, Task: task}
	return s, nil
}

func (s *story) offline() bool { return strings.HasPrefix(s.c.model, offlinePrefix) }

// agent is the configuration, as verifiers' AgentConfig takes it. There is no runtime.
func (s *story) agent() wire.Value {
	var client any
	if !s.offline() {
		client = s.c.client.record()
	}
	f := &s.h.fixed
	return value(map[string]any{
		"config": map[string]any{
			"harness": f.harness, "runtime": f.runtime, "model": s.c.model, "client": client, "sampling": s.call.Sampling,
			"max_turns": int64(1), "max_input_tokens": nil, "max_output_tokens": nil, "max_total_tokens": nil,
			"timeout": f.timeout, "retries": f.retries, "network_notice": false,
		},
		"runtime": nil, "name": "agent", "trainable": true,
	})
}

// open tells what the run starts from, with every field at its beginning, and ask what is asked.
func (s *story) open(req *zmqio.Request) error {
	s.trace.Timing = s.timing(0, false)
	return s.send(req, wire.Delta{Open: &s.trace, Set: &s.trace})
}

func (s *story) ask(req *zmqio.Request) error {
	return s.send(req, wire.Delta{Pending: s.t.records})
}

// wait tells that nothing is new, which is news to whoever fears a stall. Where it cannot be told,
// the next delta finds out.
func (s *story) wait(req *zmqio.Request) { _ = s.send(req, wire.Delta{}) }

// finish tells of an answer.
func (s *story) finish(req *zmqio.Request, done *completion) error {
	now := unixNow()
	t := &s.trace
	for i, m := range s.t.records {
		t.Nodes = append(t.Nodes, wire.Node{Parent: i - 1, Message: m, Timestamp: now})
	}
	s.call.Node = len(t.Nodes)
	t.Nodes = append(t.Nodes, wire.Node{Parent: len(t.Nodes) - 1, Message: done.message.record(), Sampled: true, Timestamp: now})
	s.call.FinishReason = done.finish
	if done.finish == "" && done.raw != "" { // verifiers knows three reasons; this is another
		s.call.Extra = append(s.call.Extra, wire.Field{Name: "finish_reason_raw", Value: value(done.raw)})
	}
	if u := done.usage; u != nil {
		s.call.Usage = u
		t.NumInputTokens, t.NumOutputTokens = u.PromptTokens, u.CompletionTokens
		if u.CachedInputTokens != nil {
			t.NumInputTokens += *u.CachedInputTokens
		}
		t.NumTotalTokens = t.NumInputTokens + t.NumOutputTokens
	}
	t.Calls = []wire.ModelCall{s.call}
	err := s.send(req, wire.Delta{
		Nodes: t.Nodes, Calls: t.Calls,
		Set: t, Fields: []string{"num_input_tokens", "num_output_tokens", "num_total_tokens"},
	})
	if err != nil {
		return err
	}
	t.IsCompleted, t.OK, t.StopCondition, t.Timing = true, true, "agent_completed", s.timing(now, true)
	fields := []string{"rewards", "metrics", "is_completed", "ok", "stop_condition", "timing"}
	if done.refused != "" {
		t.Info = value(map[string]any{"wevalr": map[string]any{"refused": done.refused}})
		fields = append(fields, "info")
	}
	return s.send(req, wire.Delta{Set: t, Fields: fields})
}

// fail tells of a call that brought no answer.
func (s *story) fail(req *zmqio.Request, failed *callError) error {
	t := &s.trace
	t.Errors = []wire.Error{{Type: "ProviderError", Message: failed.msg, StatusCode: int64(failed.status)}}
	s.call.Error = &t.Errors[0]
	t.Calls = []wire.ModelCall{s.call}
	if err := s.send(req, wire.Delta{Calls: t.Calls, Pending: []wire.Message{}}); err != nil {
		return err
	}
	t.IsCompleted, t.StopCondition, t.Timing = true, "provider_error", s.timing(unixNow(), false)
	return s.send(req, wire.Delta{Errors: t.Errors, Set: t, Fields: []string{"is_completed", "stop_condition", "timing"}})
}

// send streams one change of the trace.
func (s *story) send(req *zmqio.Request, d wire.Delta) error {
	d.Trace = s.trace.ID
	return req.Delta(d.Encode())
}

// reply ends the run: the episode without its trace, which has been told.
func (s *story) reply() ([]byte, error) {
	t := &s.trace
	s.ep.OK, s.ep.Traces = t.OK, []wire.Trace{*t}
	s.ep.NumInputTokens, s.ep.NumOutputTokens, s.ep.NumTotalTokens = t.NumInputTokens, t.NumOutputTokens, t.NumTotalTokens
	return wire.EncodeRunReply(&s.ep)
}

// timing: nothing is set up here, so boot and setup are over when they begin; finalize and scoring
// likewise, once they are reached. end 0: the agent is at work.
func (s *story) timing(end float64, reached bool) wire.Value {
	model := s.call.Time.End - s.call.Time.Start
	began, last := span(s.start, s.start), s.h.fixed.never
	if reached {
		last = span(end, end)
	}
	harness := 0.0
	if end > 0 {
		harness = max(0, end-s.start-model)
	}
	return value(map[string]any{
		"start": s.start, "boot": began, "setup": began,
		"agent": map[string]any{
			"start": s.start, "end": end,
			"model": map[string]any{"duration": model}, "harness": map[string]any{"duration": harness},
		},
		"finalize": last, "scoring": last,
	})
}

func span(start, end float64) wire.Value {
	return value(map[string]any{"start": start, "end": end})
}
