package host

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"time"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/envserver"
)

// ServeOptions are those of `wevalr serve`.
type ServeOptions struct {
	Address  string
	Config   string // "": whatever client a request brings, over ipc only
	AllowTCP bool
}

// Serve is the embedded env-server: it answers until it is told to end. Its log goes to stderr.
func (h *Host) Serve(ctx context.Context, opt ServeOptions) error {
	var model envserver.Model
	if opt.Config != "" {
		m, err := config.LoadServe(opt.Config, nil)
		if err != nil {
			return err
		}
		model = serveModel(m)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-h.signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := envserver.Serve(ctx, envserver.Options{
		Endpoint: opt.Address, AllowTCP: opt.AllowTCP, Model: model, Version: Version(),
		Getenv: os.Getenv, Logger: slog.New(slog.NewTextHandler(h.Stderr, nil)),
	})
	if err != nil {
		return UsageError{err}
	}
	return nil
}

// serveModel is the [model] section in the env-server's own words.
func serveModel(m *config.Model) envserver.Model {
	out := envserver.Model{
		Name: m.Name, BaseURL: m.Client.BaseURL, APIKeyVar: m.Client.APIKeyVar,
		Headers: m.Client.Headers, HeadersFromEnv: m.Client.HeadersFromEnv,
		MaxRetries: m.MaxRetries, Sampling: m.Sampling, Options: map[string]any{},
	}
	if t, ok := m.Client.Wire()["timeout"].(map[string]any); ok {
		out.Timeout = maps.Clone(t)
	}
	if m.Options.File != "" {
		out.Options["file"] = m.Options.File
	}
	if m.Options.WrongRate > 0 {
		out.Options["wrong_rate"] = m.Options.WrongRate
	}
	if m.Options.Latency > 0 {
		out.Options["latency"] = m.Options.Latency.Round(time.Microsecond).String()
	}
	return out
}
