package envserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// start serves opt over ipc, with hardly a pause between the tries of a call and no sign of waiting,
// and returns a client.
func start(t *testing.T, opt Options) *zmqio.Client {
	t.Helper()
	return startSigning(t, opt, time.Hour)
}

// startSigning is start with signs of waiting.
func startSigning(t *testing.T, opt Options, every time.Duration) *zmqio.Client {
	t.Helper()
	if opt.Endpoint == "" {
		opt.Endpoint = hosttest.Socket(t)
	}
	opt = opt.withDefaults()
	h, err := newHandler(opt)
	if err != nil {
		t.Fatal(err)
	}
	h.http.backoff = backoff{base: time.Microsecond, max: time.Millisecond, retryAfterMax: 10 * time.Millisecond}
	h.http.waiting.every = every
	s, err := h.listen(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return dial(t, s.Endpoint())
}

func dial(t *testing.T, endpoint string) *zmqio.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hosttest.Patience)
	defer cancel()
	c, err := zmqio.Dial(ctx, endpoint, zmqio.Options{CancelPayload: wire.EncodeCancel})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// send sends one request and returns the whole answer.
func send(t *testing.T, c *zmqio.Client, method string, payload []byte) zmqio.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hosttest.Patience)
	defer cancel()
	reply, err := c.Call(ctx, method, payload, &zmqio.Progress{})
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return reply
}

// request is a run of the model for a prompt.
func request(model, baseURL string) *wire.RunRequest {
	return &wire.RunRequest{
		TaskData: map[string]any{"prompt": "Say the word w1.", "system_prompt": "Be brief.", "answer": "w1"},
		Client:   map[string]any{"type": "eval", "base_url": baseURL, "api_key_var": "MODEL_API_KEY"},
		Model:    model,
		Sampling: map[string]any{"temperature": 0.5, "top_p": nil},
		Wevalr:   &wire.Tag{Key: "k-1", Index: 2, Try: 0, Seed: 7},
	}
}

// runWire runs r and decodes the answer.
func runWire(t *testing.T, c *zmqio.Client, r *wire.RunRequest) *wire.Result {
	t.Helper()
	payload, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	reply := send(t, c, "run", payload)
	result, err := wire.DecodeRun(reply.Deltas, reply.Payload, reply.Legacy)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return result
}

// episode is runWire for what must be an episode.
func episode(t *testing.T, c *zmqio.Client, r *wire.RunRequest) *wire.Episode {
	t.Helper()
	result := runWire(t, c, r)
	if !result.Success || result.Episode == nil {
		t.Fatalf("got success %v, error %q, want an episode", result.Success, result.Error)
	}
	return result.Episode
}

// refused is runWire for what must be refused; it returns the error's text.
func refused(t *testing.T, c *zmqio.Client, r *wire.RunRequest) string {
	t.Helper()
	result := runWire(t, c, r)
	if result.Success || result.Episode != nil {
		t.Fatalf("got an episode, want a refusal")
	}
	return result.Error
}

func TestServer_Health(t *testing.T) {
	c := start(t, Options{})
	if err := wire.DecodeHealth(send(t, c, "health", wire.EncodeHealth()).Payload); err != nil {
		t.Error(err)
	}
}

// failureText is the error of a success:false reply to any method.
func failureText(t *testing.T, payload []byte) string {
	t.Helper()
	v := wire.Value(payload)
	if v.Get("success").Any() != false {
		t.Fatalf("got %v, want success false", v.Any())
	}
	return v.Get("error").Str()
}

func TestServer_Refuses(t *testing.T) {
	c := start(t, Options{})
	must := func(v any) []byte {
		b, err := wire.ValueOf(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, row := range map[string]struct {
		method  string
		payload []byte
		want    string
	}{
		"unknown method": {"bogus", must(map[string]any{}), "unknown method 'bogus'"},
		"not msgpack":    {"run", []byte{0xc1, 0xc1, 0xc1}, "FormatError: "},
		"not a map":      {"run", must([]any{"not", "a", "map"}), "ValidationError: 1 validation error for RunRequest"},
		"no fields":      {"run", must(map[string]any{"task_data": map[string]any{"prompt": "x"}}), "ValidationError: 3 validation errors for RunRequest\nclient\n  Field required"},
		"cancel, no id":  {"cancel", must(map[string]any{}), "ValidationError: 1 validation error for CancelRequest\nrequest_id\n  Field required"},
	} {
		got := failureText(t, send(t, c, row.method, row.payload).Payload)
		if !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: got %q, want %q…", name, got, row.want)
		}
	}
}

func TestServer_RefusesClients(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*wire.RunRequest)
		want   string
	}{
		"unknown key":  {func(r *wire.RunRequest) { r.Client["foo"] = 1 }, "client.eval.foo\n  Extra inputs are not permitted"},
		"train":        {func(r *wire.RunRequest) { r.Client["type"] = "train" }, "client"},
		"no url":       {func(r *wire.RunRequest) { delete(r.Client, "base_url") }, "client.eval.base_url\n  Field required"},
		"file url":     {func(r *wire.RunRequest) { r.Client["base_url"] = "ftp://h/v1" }, "http or https"},
		"bad timeout":  {func(r *wire.RunRequest) { r.Client["timeout"] = map[string]any{"read": -1} }, "client.eval.timeout.read"},
		"own messages": {func(r *wire.RunRequest) { r.Sampling["messages"] = []any{} }, "sampling.messages"},
		"no such task": {func(r *wire.RunRequest) { r.TaskData = map[string]any{} }, "for TaskData\nprompt"},
		"no file":      {func(r *wire.RunRequest) { r.Model = "offline/replay" }, "model\n"},
	} {
		c := start(t, Options{})
		r := request("ok", "http://127.0.0.1:1/v1")
		row.change(r)
		if got := refused(t, c, r); !strings.HasPrefix(got, "ValidationError: ") || !strings.Contains(got, row.want) {
			t.Errorf("%s: got %q, want ValidationError …%s…", name, got, row.want)
		}
	}
}

func TestServer_ConfiguredEndpointOnly(t *testing.T) {
	f := newFake(t)
	c := start(t, Options{
		Model:  Model{Name: "ok", BaseURL: f.URL + "/v1", APIKeyVar: "MODEL_API_KEY", Headers: map[string]string{"X-A": "1"}},
		Getenv: func(string) string { return "" },
	})
	for name, row := range map[string]struct {
		client map[string]any
		want   string // "": allowed
	}{
		"left out":      {map[string]any{"type": "eval"}, ""},
		"the same":      {map[string]any{"type": "eval", "base_url": f.URL + "/v1/", "api_key_var": "MODEL_API_KEY", "headers": map[string]any{"X-A": "1"}, "headers_from_env": map[string]any{}}, ""},
		"other url":     {map[string]any{"type": "eval", "base_url": "http://127.0.0.1:1/v1"}, "client.eval.base_url"},
		"other key":     {map[string]any{"type": "eval", "api_key_var": "AWS_SECRET_ACCESS_KEY"}, "client.eval.api_key_var"},
		"other headers": {map[string]any{"type": "eval", "headers": map[string]any{"X-A": "2"}}, "client.eval.headers"},
		"env headers":   {map[string]any{"type": "eval", "headers_from_env": map[string]any{"X-B": "HOME"}}, "client.eval.headers_from_env"},
	} {
		r := request("ok", "")
		r.Client = row.client
		before := f.calls()
		result := runWire(t, c, r)
		if row.want == "" {
			if !result.Success || !result.Episode.OK {
				t.Errorf("%s: got %q, want an episode", name, result.Error)
			}
			continue
		}
		if result.Success || !strings.Contains(result.Error, "ValidationError") || !strings.Contains(result.Error, row.want) {
			t.Errorf("%s: got %q, want ValidationError …%s…", name, result.Error, row.want)
		}
		if f.calls() != before {
			t.Errorf("%s: the endpoint was called", name)
		}
	}
}

func TestServer_CancelInFlight(t *testing.T) {
	f := newFake(t)
	for _, model := range []string{"hang", "slow"} {
		t.Run(model, func(t *testing.T) {
			c := start(t, Options{})
			ctx, cancel := context.WithCancelCause(t.Context())
			payload, err := request(model, f.URL+"/v1").Encode()
			if err != nil {
				t.Fatal(err)
			}
			cause := errors.New("enough")
			done := make(chan struct{})
			var reply zmqio.Reply
			go func() {
				defer close(done)
				reply, err = c.Call(ctx, "run", payload, &zmqio.Progress{})
			}()
			hosttest.Await(t, "model call", f.entered)
			cancel(cause)
			hosttest.Await(t, "end of the call", done)
			hosttest.Await(t, "end of the HTTP call", f.left)
			if !errors.Is(err, cause) || len(reply.Deltas) != 2 {
				t.Errorf("got %v and %d deltas, want the cause, and what was told of the run", err, len(reply.Deltas))
			}
			if got := c.Stats(); got.Cancels != 1 || got.Drained != 2 || got.Draining != 0 || got.Pending != 0 {
				t.Errorf("got %+v, want the cancel and the run drained", got)
			}
		})
	}
}

// TestServer_CancelReplies cancels by hand, and sees the run's own reply.
func TestServer_CancelReplies(t *testing.T) {
	f := newFake(t)
	endpoint := hosttest.Socket(t)
	c := start(t, Options{Endpoint: endpoint})
	payload, err := request("hang", f.URL+"/v1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	peer := newRaw(t, endpoint)
	peer.send("run-1", "run", payload)
	hosttest.Await(t, "model call", f.entered)
	peer.send("cancel-1", "cancel", wire.EncodeCancel("run-1"))
	var got []string
	for range 4 {
		id, kind, payload := peer.recv()
		v := wire.Value(payload)
		got = append(got, fmt.Sprint(id, " ", kind, " ", v.Get("cancelled").Any(), " ", v.Get("error").Str()))
	}
	want := []string{"run-1 delta <nil> ", "run-1 delta <nil> ", "cancel-1 reply true ", "run-1 reply <nil> Cancelled: rollout aborted"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("frames: got %q, want %q", got, want)
	}
	reply := wire.Value(send(t, c, "cancel", wire.EncodeCancel("run-1")).Payload)
	if reply.Get("success").Any() != true || reply.Get("cancelled").Any() != false {
		t.Errorf("cancel of a finished run: got %v, want cancelled false", reply.Any())
	}
}

func TestServer_ClientLeavesEndsCall(t *testing.T) {
	f := newFake(t)
	c := start(t, Options{})
	payload, err := request("hang", f.URL+"/v1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.Call(t.Context(), "run", payload, &zmqio.Progress{})
	}()
	hosttest.Await(t, "model call", f.entered)
	c.Close()
	hosttest.Await(t, "end of the HTTP call", f.left)
	hosttest.Await(t, "end of the call", done)
}

func TestListen_Refuses(t *testing.T) {
	for name, row := range map[string]struct {
		opt  Options
		want string
	}{
		"tcp":           {Options{Endpoint: "tcp://127.0.0.1:0", Model: Model{Name: "offline/echo"}}, "--allow-tcp"},
		"tcp, any":      {Options{Endpoint: "tcp://127.0.0.1:0", AllowTCP: true}, "a model must be configured"},
		"no url":        {Options{Model: Model{Name: "gpt"}}, "base_url"},
		"option":        {Options{Model: Model{Name: "gpt", BaseURL: "http://h/v1", Options: map[string]any{"file": "x"}}}, "option file is unknown"},
		"timeout":       {Options{Model: Model{Name: "gpt", BaseURL: "http://h/v1", Timeout: map[string]any{"read": "soon"}}}, "timeout.read"},
		"sampling":      {Options{Model: Model{Name: "gpt", BaseURL: "http://h/v1", Sampling: map[string]any{"seed": 1, "stream": true}}}, "sampling.stream: Input is this server's own"},
		"offline model": {Options{Model: Model{Name: "offline/nope"}}, "no such model"},
		"endpoint":      {Options{Endpoint: "udp://x"}, "endpoint"},
	} {
		if row.opt.Endpoint == "" {
			row.opt.Endpoint = hosttest.Socket(t)
		}
		s, err := Listen(row.opt)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want …%s…", name, err, row.want)
		}
	}
}

func TestServe_TCP_UntilContextEnds(t *testing.T) {
	s, err := Listen(Options{Endpoint: "tcp://127.0.0.1:0", AllowTCP: true, Model: Model{Name: "offline/echo"}})
	if err != nil {
		t.Fatal(err)
	}
	ep := episode(t, dial(t, s.Endpoint()), request("offline/echo", ""))
	if got := ep.Selected().Completion(); got != "Say the word w1." {
		t.Errorf("got %q", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Serve(ctx, Options{Endpoint: hosttest.Socket(t)}); err != nil {
		t.Errorf("Serve: got %v, want nil at the context's end", err)
	}
}
