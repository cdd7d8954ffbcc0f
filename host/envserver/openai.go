package envserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Why net/http and not a client library: sampling keys must reach the endpoint as they are, known
// or not (min_p, chat_template_kwargs, a provider's own), and go-openai's ChatCompletionRequest is
// a closed struct without a way to add one; nor does its reply show fields that it does not name
// (reasoning, reasoning_details, cost).

// maxBody bounds an endpoint's answer, decompressed; maxErrorText what of a refusal is kept.
const (
	maxBody      = 16 << 20
	maxErrorText = 4 << 10
	maxMasked    = 64 << 10 // of a refusal: read further than it is kept
)

// errReadTimeout is the cause of a call that the endpoint let hang.
var errReadTimeout = errors.New("no byte from the endpoint in time")

// openai calls an OpenAI-compatible endpoint. Retries, masking and the bounds are here.
type openai struct {
	http       *http.Client
	getenv     func(string) string
	maxRetries int
	backoff    backoff
	waiting    waiting
	log        *slog.Logger
}

// connectKey carries a call's connect timeout to the dialer: the transport detaches a dial from
// its request's end, but keeps the values.
type connectKey struct{}

func newOpenAI(getenv func(string) string, maxRetries int, log *slog.Logger) *openai {
	dialer := &net.Dialer{KeepAlive: 30 * time.Second}
	return &openai{
		http: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment,
				DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					if d, ok := ctx.Value(connectKey{}).(time.Duration); ok && d > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, d)
						defer cancel()
					}
					return dialer.DialContext(ctx, network, addr)
				},
				TLSHandshakeTimeout: 30 * time.Second,
				MaxIdleConnsPerHost: 256,
				IdleConnTimeout:     90 * time.Second,
				ForceAttemptHTTP2:   true,
			},
			// A redirect would take prompt and key to a host that nobody named.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		getenv:     getenv,
		maxRetries: maxRetries,
		backoff:    backoff{base: 500 * time.Millisecond, max: 8 * time.Second, retryAfterMax: time.Minute},
		waiting:    waiting{every: signEvery},
		log:        log,
	}
}

// Close drops idle connections.
func (o *openai) Close() error {
	o.http.CloseIdleConnections()
	return nil
}

func (o *openai) complete(ctx context.Context, c *call) (completion, int, error) {
	secrets, _ := newMasker(o.getenv, c.client.secretVars())
	body, err := encodeRequest(c)
	if err != nil {
		return completion{}, 1, failCall(http.StatusBadRequest, "request: %s", secrets.mask(err.Error()))
	}
	var paused atomic.Bool
	stop := o.waiting.during(c.sign, &paused)
	defer stop()
	for try := 1; ; try++ {
		done, after, err := o.once(ctx, c, body)
		if err == nil {
			done.mask(secrets)
			return done, try, nil
		}
		var failed *callError
		if !errors.As(err, &failed) {
			return completion{}, try, err
		}
		failed.msg = cut(secrets.mask(failed.msg)) // masked first: half a secret is no secret to the masker
		if try > o.maxRetries || !retryable(failed.status) {
			return completion{}, try, failed
		}
		wait := o.backoff.wait(try, after)
		o.log.WarnContext(ctx, "model call is tried again",
			slog.Int("status", failed.status), slog.Int("try", try+1), slog.Duration("wait", wait), slog.String("err", failed.msg))
		paused.Store(true)
		err = pause(ctx, wait)
		paused.Store(false)
		if err != nil {
			return completion{}, try, err
		}
	}
}

// once is one HTTP exchange. after is the endpoint's Retry-After.
func (o *openai) once(ctx context.Context, c *call, body []byte) (done completion, after time.Duration, err error) {
	callCtx, cancel := context.WithCancelCause(context.WithValue(ctx, connectKey{}, c.client.connect))
	defer cancel(nil)
	idle := newIdleTimer(c.client.read, &o.waiting.heard, func() { cancel(errReadTimeout) })
	defer idle.stop()

	req, err := http.NewRequestWithContext(callCtx, http.MethodPost, joinURL(c.client.baseURL, "/chat/completions"), bytes.NewReader(body))
	if err != nil {
		return done, 0, failCall(http.StatusBadRequest, "base_url: %v", withoutURL(err))
	}
	o.setHeaders(req.Header, c)
	resp, err := o.http.Do(req)
	if err != nil {
		return done, 0, transportError(ctx, callCtx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	idle.heard()
	answer, err := io.ReadAll(io.LimitReader(idle.reader(resp.Body), maxBody+1))
	switch {
	case ctx.Err() != nil, context.Cause(callCtx) != nil:
		return done, 0, transportError(ctx, callCtx, err)
	case err != nil && resp.StatusCode < 400:
		return done, 0, failCall(http.StatusBadGateway, "malformed upstream response: %v", err)
	case len(answer) > maxBody:
		return done, 0, failCall(http.StatusBadGateway, "malformed upstream response: more than %d MiB", maxBody>>20)
	}
	if resp.StatusCode >= 300 {
		if filtered(resp.StatusCode, answer) {
			done = completion{message: message{role: "assistant", content: ""}, raw: "content_filter"}
			done.filter()
			return done, 0, nil
		}
		return done, retryAfter(resp.Header, time.Now()), statusError(resp.StatusCode, answer)
	}
	done, err = decodeReply(answer)
	return done, 0, err
}

func (o *openai) setHeaders(h http.Header, c *call) {
	for k, v := range c.client.headers {
		h.Set(k, v)
	}
	for k, name := range c.client.headersFromEnv {
		if v := o.getenv(name); v != "" {
			h.Set(k, v)
		}
	}
	key := ""
	if c.client.apiKeyVar != "" {
		key = o.getenv(c.client.apiKeyVar)
	}
	if key == "" {
		key = "EMPTY"
	}
	h.Set("Authorization", "Bearer "+key)
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
	h.Set("X-Session-Id", c.traceID)
}

// transportError tells our own cancel, a timeout and an unreachable endpoint apart.
func transportError(ctx, callCtx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(context.Cause(callCtx), errReadTimeout) {
		return failCall(http.StatusGatewayTimeout, "%v", errReadTimeout)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return failCall(http.StatusGatewayTimeout, "%v", withoutURL(err))
	}
	return failCall(http.StatusServiceUnavailable, "%v", withoutURL(err))
}

// withoutURL drops net/http's "Post URL:": a base_url may carry what is nobody's business.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

func statusError(status int, body []byte) *callError {
	text := strings.TrimSpace(string(body[:min(len(body), maxMasked)]))
	if status < 400 {
		return failCall(http.StatusMisdirectedRequest, "upstream %d: a redirect is not followed", status)
	}
	return failCall(status, "upstream %d: %s", status, text)
}

// filtered reports whether a 400 is a content filter's verdict on the prompt (Azure's way to say it).
func filtered(status int, body []byte) bool {
	if status != http.StatusBadRequest {
		return false
	}
	var e struct {
		Error struct {
			Code any `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil {
		return false
	}
	return e.Error.Code == "content_filter" || e.Error.Code == "content_policy_violation"
}

func joinURL(base, path string) string {
	return strings.TrimRight(base, "/") + path
}

// encodeRequest writes the body: the conversation and every sampling value that is not nil, known
// to us or not; extra_body is flattened, under the values beside it.
func encodeRequest(c *call) ([]byte, error) {
	body := make(map[string]any, len(c.sampling)+3)
	flatten(body, c.sampling)
	for k, v := range body {
		if v == nil {
			delete(body, k)
		}
	}
	messages := make([]any, len(c.messages))
	for i := range c.messages {
		messages[i] = c.messages[i].request()
	}
	body["model"], body["messages"], body["stream"] = c.model, messages, false
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return buf.Bytes(), nil
}

// flatten copies sampling values, those of extra_body among them; a value beside it wins.
func flatten(dst, sampling map[string]any) {
	extra, _ := sampling["extra_body"].(map[string]any)
	maps.Copy(dst, extra)
	for k, v := range sampling {
		if k != "extra_body" {
			dst[k] = v
		}
	}
}
