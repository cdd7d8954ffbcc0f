// Package envserver is the embedded env-server (`wevalr serve`): it answers the requests of the
// env-server's wire, version 0.4.x of verifiers, deltas included, by asking a model one question a
// rollout. The model is an OpenAI-compatible endpoint, or one of the offline models (offline/demo,
// offline/echo, offline/replay), which need no network. Tasks come with the requests; prompts are
// finished by the client; nothing is scored here, so rewards and metrics are empty.
//
// # Concurrency
//
// A [Server] runs each rollout in a goroutine of zmqio and has none of its own. How many run at
// once is the client's to bound.
//
// # Ownership
//
// A Server owns its socket, its HTTP connections and the replay file, and lets go of them in
// [Server.Close]. [Options] are not changed; their maps must not change while the server lives.
//
// # Cancellation
//
// A rollout ends by a cancel on the wire, by its client's leaving, and by Close: the model call is
// ended at once, HTTP included, and the run answered with "Cancelled: rollout aborted".
//
// # Waiting
//
// A model call may wait for its turn at the endpoint. As long as the endpoint brings bytes to any call,
// and while this server itself pauses between two tries, a rollout that waits streams an empty delta
// about once a second: its client sees a queue, and not a stall. An endpoint that brings nothing to
// anybody is silence; what one call may wait for one byte is its client's timeout.read.
//
// # Errors
//
// A request that cannot be a rollout is refused (success:false, the texts of verifiers). A model
// that fails is an episode with a ProviderError and its HTTP status, 502 for what is no answer,
// 503 for unreachable, 504 for silence. A refusal and a content filter are answers, and marked in
// the trace's info.wevalr. The values of the variables that name secrets are in none of them, nor
// in logs.
package envserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/wevalr/wevalr/zmqio"
)

// Options say where a server listens and which model it asks.
type Options struct {
	// Endpoint is "ipc://path" or "tcp://host:port" (port 0: any).
	Endpoint string
	// AllowTCP is needed for tcp, where anybody who can connect can spend the operator's money.
	AllowTCP bool
	// Model is what may be asked. Zero: whatever endpoint the client names, over ipc only.
	Model Model
	// Version is wevalr's own, for the traces. "" is "devel".
	Version string
	// Getenv reads the variables that name secrets. nil is os.Getenv.
	Getenv func(string) string
	// Logger gets refused requests and repeated model calls; nil discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Version = cmp.Or(o.Version, "devel")
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	return o
}

// Model is the [model] section of an eval file, as far as this server needs it.
type Model struct {
	// Name is the configured model's; "offline/…" needs no endpoint. Requests name theirs: any model
	// of the endpoint, offline/demo, offline/echo, and the configured one.
	Name string
	// BaseURL, APIKeyVar, Headers and HeadersFromEnv are the only ones that a request may name.
	BaseURL        string
	APIKeyVar      string
	Headers        map[string]string
	HeadersFromEnv map[string]string
	// Sampling is checked alone: requests bring their own.
	Sampling map[string]any
	// Timeout is {connect, read, write, pool} in seconds, for requests that bring none.
	Timeout map[string]any
	// MaxRetries bounds the further tries of a model call. 0: none.
	MaxRetries int
	// Options are an offline model's: wrong_rate and latency of demo, file of replay.
	Options map[string]any
}

func (m *Model) isZero() bool { return m.Name == "" && m.BaseURL == "" }

// Server is a listening env-server.
type Server struct {
	zmq    *zmqio.Server
	models io.Closer
}

// Serve listens and answers until ctx ends, and returns nil then.
//
// # Errors
//
// As [Listen].
func Serve(ctx context.Context, opt Options) error {
	s, err := Listen(opt)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return s.Close()
}

// Check finds what would keep a server for m from starting, its replay file read to the end, without
// listening.
//
// # Errors
//
// As Listen.
func Check(m Model) error {
	opt := Options{Model: m}.withDefaults()
	h, err := newHandler(opt)
	if err != nil {
		return err
	}
	return h.Close()
}

// Listen returns when requests are answered.
//
// # Errors
//
// An endpoint that cannot be had, tcp without leave, an unknown offline model or option, a replay
// file with a bad line ("file:line: what").
func Listen(opt Options) (*Server, error) {
	opt = opt.withDefaults()
	if strings.HasPrefix(opt.Endpoint, "tcp://") {
		switch {
		case !opt.AllowTCP:
			return nil, fmt.Errorf("serve: %s: tcp has no access control; say --allow-tcp to serve it", opt.Endpoint)
		case opt.Model.isZero():
			return nil, fmt.Errorf("serve: %s: over tcp a model must be configured; any client is taken over ipc only", opt.Endpoint)
		}
	}
	h, err := newHandler(opt)
	if err != nil {
		return nil, err
	}
	return h.listen(opt)
}

func (h *handler) listen(opt Options) (*Server, error) {
	z, err := zmqio.Listen(opt.Endpoint, h.handle, zmqio.ServerOptions{Logger: opt.Logger})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serve: %w", err), h.Close())
	}
	return &Server{zmq: z, models: h}, nil
}

// Endpoint is where the server listens, the port included.
func (s *Server) Endpoint() string { return s.zmq.Endpoint() }

// Close cancels what runs and ends the connections.
func (s *Server) Close() error { return errors.Join(s.zmq.Close(), s.models.Close()) }
