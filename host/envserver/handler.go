package envserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// handler turns requests into replies.
type handler struct {
	own     *endpoint // nil: any
	name    string    // the configured model's
	offline map[string]model
	http    *openai
	fixed   fixed
	log     *slog.Logger
}

func newHandler(opt Options) (*handler, error) {
	m := &opt.Model
	h := &handler{
		name:  m.Name,
		http:  newOpenAI(opt.Getenv, m.MaxRetries, opt.Logger),
		fixed: newFixed(opt.Version),
		log:   opt.Logger,
	}
	if !m.isZero() {
		own, err := ownEndpoint(m)
		if err != nil {
			return nil, err
		}
		h.own = own
		if _, short := newMasker(opt.Getenv, own.secretVars()); len(short) > 0 {
			opt.Logger.Warn("a secret is too short to be masked", slog.String("variables", strings.Join(short, ", ")))
		}
	}
	h.offline = map[string]model{offlinePrefix + "echo": echo{}}
	for _, name := range [...]string{offlinePrefix + "demo", m.Name} {
		if !strings.HasPrefix(name, offlinePrefix) {
			continue
		}
		var options map[string]any
		if name == m.Name {
			options = m.Options
		}
		o, err := newOffline(name, options)
		if err != nil {
			return nil, fmt.Errorf("model: %s: %w", name, err)
		}
		h.offline[name] = o
	}
	return h, nil
}

// ownEndpoint is the configured endpoint; that of an offline model has no base_url.
func ownEndpoint(m *Model) (*endpoint, error) {
	if !strings.HasPrefix(m.Name, offlinePrefix) {
		if why := checkBaseURL(m.BaseURL); why != "" {
			return nil, fmt.Errorf("model: %s: client.base_url: %s", m.Name, why)
		}
		if err := onlyOptions(m.Options); err != nil {
			return nil, fmt.Errorf("model: %s: %w", m.Name, err)
		}
	}
	var own endpoint
	bad := &wire.ValidationError{Model: "[model]"}
	var timeout any
	if m.Timeout != nil {
		timeout = m.Timeout
	}
	own.setTimeout(timeout, "client.timeout", bad)
	checkSampling(m.Sampling, bad)
	if len(bad.Problems) > 0 {
		return nil, fmt.Errorf("model: %s: %s: %s", m.Name, bad.Problems[0].Loc, bad.Problems[0].Msg)
	}
	own.baseURL, own.apiKeyVar = m.BaseURL, m.APIKeyVar
	own.headers, own.headersFromEnv = m.Headers, m.HeadersFromEnv
	return &own, nil
}

// Close lets go of files and connections.
func (h *handler) Close() error {
	errs := []error{h.http.Close()}
	for _, m := range h.offline {
		if c, ok := m.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// handle answers one request.
func (h *handler) handle(ctx context.Context, req *zmqio.Request) []byte {
	reply, err := Answer(req)
	switch {
	case err != nil:
		return h.refuse(req, err)
	case reply != nil:
		return reply
	case req.Method == "run":
		return h.run(ctx, req)
	default:
		return wire.EncodeFailure(fmt.Sprintf("unknown method '%s'", req.Method))
	}
}

func (h *handler) refuse(req *zmqio.Request, err error) []byte {
	h.log.Warn("request refused", slog.String("method", req.Method), slog.String("req", req.ID), slog.Any("err", err))
	return wire.EncodeFailure(err.Error())
}

func (h *handler) run(ctx context.Context, req *zmqio.Request) []byte {
	r, err := wire.DecodeRunRequest(req.Payload)
	if err != nil {
		return h.refuse(req, err)
	}
	c, m, err := h.prepare(r)
	if err != nil {
		return h.refuse(req, err)
	}
	t, err := newTask(r.TaskData)
	if err != nil {
		return h.refuse(req, err)
	}
	c.messages = t.messages
	reply, err := h.rollout(ctx, req, t, c, m)
	switch {
	case ctx.Err() != nil && err != nil:
		return wire.EncodeFailure("Cancelled: rollout aborted")
	case err != nil:
		return h.refuse(req, err)
	}
	return reply
}

// prepare checks what a request says of model, endpoint and sampling.
func (h *handler) prepare(r *wire.RunRequest) (*call, model, error) {
	bad := &wire.ValidationError{Model: "RunRequest"}
	c := &call{model: r.Model, sampling: r.Sampling, tag: r.Wevalr, client: readEndpoint(r.Client, bad)}
	checkSampling(r.Sampling, bad)
	var m model = h.http
	if strings.HasPrefix(r.Model, offlinePrefix) {
		// No endpoint is called, so what the client says of one does not matter.
		if m = h.offline[r.Model]; m == nil {
			bad.Add("model", "Input should be a model that this server was started with: it has no file to replay, or no such model", "value_error", r.Model)
		}
		return c, m, refusal(bad)
	}
	if h.own != nil {
		if h.own.baseURL == "" {
			bad.Add("model", "Input should be '"+h.name+"': this server was started without an endpoint", "value_error", r.Model)
		}
		c.client.fix(h.own, r.Client["timeout"] != nil, bad)
	} else if why := checkBaseURL(c.client.baseURL); why != "" {
		bad.Add("client.eval.base_url", why, "value_error", c.client.baseURL)
	}
	return c, m, refusal(bad)
}

// checkSampling refuses the keys that are not the sampler's. A stream is among them: many endpoints
// count no tokens then, and some cut one short for the next request.
func checkSampling(sampling map[string]any, bad *wire.ValidationError) {
	for _, key := range [...]string{"model", "messages", "stream", "stream_options", "n"} {
		if v, ok := sampling[key]; ok {
			bad.Add("sampling."+key, "Input is this server's own to set", "extra_forbidden", v)
		}
	}
}

// refusal is bad as an error; nil when nothing is wrong.
func refusal(bad *wire.ValidationError) error {
	if len(bad.Problems) == 0 {
		return nil
	}
	return bad
}
