package envserver

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
)

const testKey = "sk-test-0123456789"

func testEnv(name string) string {
	return map[string]string{"MODEL_API_KEY": testKey, "TEAM": "team-secret-42"}[name]
}

// fakeOptions configure f as the one endpoint, with two further tries of a call.
func fakeOptions(f *fake) Options {
	return Options{Model: Model{Name: "m", BaseURL: f.URL + "/v1", APIKeyVar: "MODEL_API_KEY", HeadersFromEnv: map[string]string{"X-Team": "TEAM"}, MaxRetries: 2}, Getenv: testEnv}
}

// askFake runs one rollout of model against a fresh endpoint.
func askFake(t *testing.T, model string) (*wire.Episode, *fake) {
	t.Helper()
	f := newFake(t)
	c := start(t, fakeOptions(f))
	r := request(model, "")
	r.Client = map[string]any{"type": "eval"}
	return episode(t, c, r), f
}

func TestRun_OK(t *testing.T) {
	f := newFake(t)
	c := start(t, fakeOptions(f))
	r := request("ok", "")
	r.Client = map[string]any{"type": "eval"}
	r.Sampling = map[string]any{"temperature": 0.5, "top_p": nil, "seed": 99, "min_p": 0.1, "extra_body": map[string]any{"top_k": 5, "temperature": 0.9}}
	ep := episode(t, c, r)

	body, head := f.last(t)
	want := map[string]any{
		"model": "ok", "stream": false, "temperature": 0.5, "seed": 99.0, "min_p": 0.1, "top_k": 5.0,
		"messages": []any{map[string]any{"role": "system", "content": "Be brief."}, map[string]any{"role": "user", "content": "Say the word w1."}},
	}
	if !reflect.DeepEqual(body, want) {
		t.Errorf("body:\ngot  %v\nwant %v", body, want)
	}
	tr := ep.Selected()
	if head.Get("Authorization") != "Bearer "+testKey || head.Get("X-Team") != "team-secret-42" || head.Get("X-Session-Id") != tr.ID {
		t.Errorf("headers: got %v", head)
	}
	if !ep.OK || !tr.OK || !tr.IsCompleted || tr.StopCondition != "agent_completed" || tr.Completion() != "w1" {
		t.Errorf("got ok %v/%v, completed %v, %q, %q", ep.OK, tr.OK, tr.IsCompleted, tr.StopCondition, tr.Completion())
	}
	if o, fail := ep.Outcome(); o != failure.Completed || fail != nil {
		t.Errorf("outcome: got %v, %v", o, fail)
	}
	if len(tr.Nodes) != 3 || len(tr.Calls) != 1 || tr.Nodes[2].Parent != 1 || !tr.Nodes[2].Sampled || tr.Nodes[0].Parent != -1 {
		t.Errorf("got nodes %+v", tr.Nodes)
	}
	call := tr.Calls[0]
	u := call.Usage
	if u == nil || u.PromptTokens != 7 || *u.CachedInputTokens != 5 || u.CompletionTokens != 4 || *u.ReasoningTokens != 2 || *u.Cost != 0.25 {
		t.Errorf("usage: got %+v", u)
	}
	if ep.NumInputTokens != 12 || ep.NumOutputTokens != 4 || tr.NumTotalTokens != 16 {
		t.Errorf("tokens: got %d, %d, %d", ep.NumInputTokens, ep.NumOutputTokens, tr.NumTotalTokens)
	}
	if call.FinishReason != "stop" || call.Node != 2 || call.Model != "ok" || call.Endpoint != "/chat/completions" || !(call.Time.End > call.Time.Start) {
		t.Errorf("call: got %+v", call)
	}
	if tr.Task.Key != "k-1" || len(tr.Task.Hash) != 64 || tr.Task.Data.Get("answer").Str() != "w1" || ep.Task.Hash != tr.Task.Hash {
		t.Errorf("task: got %+v", tr.Task)
	}
	if got := tr.Verifiers.Get("version").Str(); got != "wevalr/devel" {
		t.Errorf("version: got %q, want our own", got)
	}
	if got := tries(tr); got != 1 {
		t.Errorf("tries: got %d, want 1", got)
	}
}

func tries(t *wire.Trace) int64 {
	n, _ := t.Calls[0].Extra.Get("tries").Any().(int64)
	return n
}

func TestRun_ModelAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		outcome    failure.Outcome
		completion string
		finish     string
		refused    string
		input      int64
	}{
		"ok":           {failure.Completed, "w1", "stop", "", 12},
		"length":       {failure.Limit, "and then", "length", "", 12},
		"refusal":      {failure.Completed, "I can not help with that.", "stop", "refusal", 12},
		"filter":       {failure.Completed, "", "", "content_filter", 12},
		"promptfilter": {failure.Completed, "", "", "content_filter", 0},
		"nousage":      {failure.Completed, "w1", "stop", "", 0},
		"oddusage":     {failure.Completed, "w1", "stop", "", 0},
		"tools":        {failure.Completed, "", "tool_calls", "", 12},
		"thinking":     {failure.Completed, "4", "stop", "", 12},
		"parts":        {failure.Completed, "in parts", "stop", "", 12},
	} {
		t.Run(name, func(t *testing.T) {
			ep, _ := askFake(t, name)
			tr := ep.Selected()
			o, fail := ep.Outcome()
			if o != row.outcome || fail != nil || !ep.OK {
				t.Errorf("got %v, %v, ok %v, want %v", o, fail, ep.OK, row.outcome)
			}
			if tr.Completion() != row.completion || tr.Calls[0].FinishReason != row.finish {
				t.Errorf("got %q, %q, want %q, %q", tr.Completion(), tr.Calls[0].FinishReason, row.completion, row.finish)
			}
			if got := tr.Info.Get("wevalr", "refused").Str(); got != row.refused || ep.Refused() != (row.refused != "") {
				t.Errorf("refused: got %q, %v, want %q", got, ep.Refused(), row.refused)
			}
			if ep.NumInputTokens != row.input || (tr.Calls[0].Usage == nil) != (row.input == 0) {
				t.Errorf("usage: got %d, %+v, want %d", ep.NumInputTokens, tr.Calls[0].Usage, row.input)
			}
			last := tr.Nodes[len(tr.Nodes)-1].Message
			if (name == "tools") != (len(last.ToolCalls) == 1) || (name == "thinking") != (last.Reasoning != nil) {
				t.Errorf("message: got %+v", last)
			}
			if name == "tools" && (last.ToolCalls[0].Name != "lookup" || last.ToolCalls[0].Arguments != `{"key": "k1"}` || !last.Content.IsNil()) {
				t.Errorf("tool call: got %+v", last)
			}
		})
	}
}

func TestRun_ModelFails(t *testing.T) {
	for name, row := range map[string]struct {
		status    int64
		kind      string
		calls     int
		retryable bool
		text      string
	}{
		"status:400": {400, "rejected", 1, false, "upstream 400: "},
		"status:401": {401, "rejected", 1, false, "upstream 401: "},
		"status:403": {403, "rejected", 1, false, "upstream 403: "},
		"context":    {400, "rejected", 1, false, "context_length_exceeded"},
		"html":       {502, "unavailable", 3, true, "malformed upstream response"},
		"nochoice":   {502, "unavailable", 3, true, "no choices[0].message"},
		"cut":        {502, "unavailable", 3, true, "unexpected EOF"},
		"chunks":     {502, "unavailable", 3, true, "unexpected EOF"},
		"sse":        {502, "unavailable", 3, true, "malformed upstream response"},
		"drop":       {503, "unavailable", 3, true, ""},
		"status:500": {500, "unavailable", 3, true, "upstream 500: "},
		"status:503": {503, "unavailable", 3, true, "upstream 503: "},
		"status:408": {408, "unavailable", 3, true, "upstream 408: "},
		"status:429": {429, "rate_limited", 3, true, "upstream 429: "},
		"wrapped":    {429, "rate_limited", 3, true, "upstream is full"},
		"redirect":   {421, "rejected", 1, false, "redirect is not followed"},
		"badtool":    {502, "unavailable", 3, true, "tool_calls[0] has no name"},
		"huge":       {502, "unavailable", 3, true, "more than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ep, f := askFake(t, name)
			tr := ep.Selected()
			if ep.OK || tr.OK || !tr.IsCompleted || tr.StopCondition != "provider_error" || len(tr.Nodes) != 0 || len(tr.Errors) != 1 {
				t.Fatalf("got ok %v/%v, completed %v, %q, %d nodes, %v", ep.OK, tr.OK, tr.IsCompleted, tr.StopCondition, len(tr.Nodes), tr.Errors)
			}
			e := tr.Errors[0]
			if e.Type != "ProviderError" || e.StatusCode != row.status || !strings.Contains(e.Message, row.text) {
				t.Errorf("error: got %+v, want %d …%s…", e, row.status, row.text)
			}
			if c := tr.Calls[0]; c.Error == nil || c.Error.StatusCode != row.status || c.Node != -1 {
				t.Errorf("call: got %+v", c)
			}
			if o, fail := ep.Outcome(); o != failure.Errored || fail == nil || fail.Source != failure.Model || fail.Kind != row.kind || fail.Retryable != row.retryable {
				t.Errorf("outcome: got %v, %+v, want model %s", o, fail, row.kind)
			}
			if f.calls() != row.calls || tries(tr) != int64(row.calls) {
				t.Errorf("got %d calls, %d tries recorded, want %d", f.calls(), tries(tr), row.calls)
			}
		})
	}
}

func TestRun_Unreachable(t *testing.T) {
	c := start(t, Options{})
	ep := episode(t, c, request("ok", "http://127.0.0.1:1/v1"))
	if e := ep.Selected().Errors[0]; e.StatusCode != 503 || !strings.Contains(e.Message, "connection refused") {
		t.Errorf("got %+v, want 503 connection refused", e)
	}
	unavailable(t, ep)
}

// unavailable is what a model is that gives no answer: an error that may pass.
func unavailable(t *testing.T, ep *wire.Episode) {
	t.Helper()
	if o, fail := ep.Outcome(); o != failure.Errored || fail == nil || fail.Source != failure.Model || fail.Kind != "unavailable" || !fail.Retryable {
		t.Errorf("outcome: got %v, %+v, want model unavailable", o, fail)
	}
}

func TestRun_ReadTimeout(t *testing.T) {
	f := newFake(t)
	c := start(t, Options{})
	for _, model := range []string{"hang", "slow"} {
		r := request(model, f.URL+"/v1")
		r.Client["timeout"] = map[string]any{"read": 0.05, "connect": 5}
		ep := episode(t, c, r)
		if e := ep.Selected().Errors[0]; e.StatusCode != 504 {
			t.Errorf("%s: got %+v, want 504", model, e)
		}
		unavailable(t, ep)
		hosttest.Await(t, "end of the HTTP call", f.left)
	}
}

// read bounds the time between bytes: a slow answer is an answer.
func TestRun_ReadTimeout_SlowBody(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it takes two seconds")
	}
	t.Parallel()
	f := newFake(t)
	c := start(t, Options{})
	r := request("trickle", f.URL+"/v1")
	r.Client["timeout"] = map[string]any{"read": 2.0}
	began := time.Now()
	ep := episode(t, c, r)
	if got := ep.Selected().Completion(); !ep.OK || got != "slowly" {
		t.Errorf("got %q, %v", got, ep.Selected().Errors)
	}
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("took %v: too fast to tell", took)
	}
}

func TestRun_Retries(t *testing.T) {
	for model, want := range map[string]struct {
		text  string
		tries int64
		log   string
	}{
		"flaky":        {"at last", 3, "try=3"},
		"limited:7200": {"granted", 2, "wait=10ms"}, // as long as start allows
		"limited:date": {"granted", 2, "wait=10ms"},
	} {
		t.Run(model, func(t *testing.T) {
			f := newFake(t)
			opt := fakeOptions(f)
			var log bytes.Buffer
			opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c := start(t, opt)
			r := request(model, "")
			r.Client = map[string]any{"type": "eval"}
			ep := episode(t, c, r)
			if tr := ep.Selected(); tr.Completion() != want.text || tries(tr) != want.tries || !ep.OK {
				t.Errorf("got %q after %d tries, want %q after %d", tr.Completion(), tries(tr), want.text, want.tries)
			}
			if !strings.Contains(log.String(), want.log) {
				t.Errorf("log: got %s, want …%s…", log.String(), want.log)
			}
		})
	}
}

func TestRun_SecretsStayHidden(t *testing.T) {
	f := newFake(t)
	opt := fakeOptions(f)
	var log bytes.Buffer
	opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
	opt.Model.MaxRetries = 1
	c := start(t, opt)
	for _, model := range []string{"leak", "status:500"} {
		r := request(model, "")
		r.Client = map[string]any{"type": "eval"}
		payload, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		reply := send(t, c, "run", payload)
		all := bytes.Join(append(reply.Deltas, reply.Payload), nil)
		if bytes.Contains(all, []byte(testKey)) || bytes.Contains(all, []byte("team-secret-42")) {
			t.Errorf("%s: a secret is in the answer", model)
		}
		if !bytes.Contains(all, []byte("[MODEL_API_KEY]")) {
			t.Errorf("%s: the mask is not in the answer: the endpoint did not echo the key, so nothing was tested", model)
		}
	}
	if got := log.String(); strings.Contains(got, testKey) || !strings.Contains(got, "[MODEL_API_KEY]") {
		t.Errorf("log: got %s", got)
	}
}

func TestRun_UnsetKeyIsEMPTY(t *testing.T) {
	f := newFake(t)
	c := start(t, Options{Getenv: func(string) string { return "" }})
	episode(t, c, request("ok", f.URL+"/v1"))
	if _, head := f.last(t); head.Get("Authorization") != "Bearer EMPTY" {
		t.Errorf("got %q, want Bearer EMPTY", head.Get("Authorization"))
	}
}

func TestRun_PromptAsMessages(t *testing.T) {
	f := newFake(t)
	c := start(t, Options{})
	r := request("ok", f.URL+"/v1")
	r.TaskData = map[string]any{"prompt": []any{
		map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "look"}, map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:,x"}}}},
		map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": "1", "name": "f", "arguments": "{}"}}},
		map[string]any{"role": "tool", "tool_call_id": "1", "content": "r", "name": "f"},
	}}
	ep := episode(t, c, r)
	body, _ := f.last(t)
	var want any
	if err := json.Unmarshal([]byte(`[
		{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:,x"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"1","content":"r","name":"f"}]`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(body["messages"], want) {
		t.Errorf("messages:\ngot  %v\nwant %v", body["messages"], want)
	}
	nodes := ep.Selected().Nodes
	if len(nodes) != 4 || nodes[0].Message.Content.String() != "look" || nodes[1].Message.ToolCalls[0].Name != "f" || nodes[2].Message.ToolCallID != "1" {
		t.Errorf("nodes: got %+v", nodes)
	}
}

func TestRun_Offline(t *testing.T) {
	path := writeReplay(t, `{"key":"k-1","index":2,"completion":"recorded"}`)
	c := start(t, Options{Model: Model{Name: "offline/replay", Options: map[string]any{"file": path}}})
	r := request("offline/replay", "")
	r.Client = map[string]any{"type": "eval"}
	ep := episode(t, c, r)
	if tr := ep.Selected(); tr.Completion() != "recorded" || tr.Calls[0].Endpoint != "offline/replay" || !ep.OK {
		t.Errorf("got %q from %q", tr.Completion(), tr.Calls[0].Endpoint)
	}
	r.Wevalr.Key = "k-2"
	ep = episode(t, c, r)
	o, fail := ep.Outcome()
	if o != failure.Errored || fail.Source != failure.Model || fail.Kind != "rejected" || !strings.Contains(fail.Message, `"k-2"`) || !strings.Contains(fail.Message, path) {
		t.Errorf("unknown key: got %v, %+v, want model rejected that names key and file", o, fail)
	}
	r.Model, r.TaskData = "offline/demo", map[string]any{"prompt": "What is 20 + 22?"}
	if got := episode(t, c, r).Selected().Completion(); got != "42" {
		t.Errorf("demo: got %q", got)
	}
	r.Model = "gpt-4"
	if got := refused(t, c, r); !strings.Contains(got, "started without an endpoint") {
		t.Errorf("an online model: got %q", got)
	}
}
