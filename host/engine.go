package host

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/rollout"
	"github.com/wevalr/wevalr/host/server"
)

// spec is the engine's part of the attempt.
func (a *attempt) spec(servers rollout.Servers, drain <-chan struct{}) rollout.Spec {
	named := clientVars(a.cfg)
	list, short := secrets(os.Environ(), named)
	for _, name := range short {
		a.log.Warn("the value of a variable is too short to be masked", slog.String("variable", name))
	}
	return rollout.Spec{
		Journal: a.run, Tasks: a.tasks, Rollouts: a.cfg.Tasks.NumRollouts, Owed: a.owed,
		Servers: servers, Driver: a.plugins.driver, Scorers: a.plugins.scorers, Request: request(a.cfg),
		CheckEcho: a.cfg.Server.Kind() != config.Embedded, Replays: a.replays(), MaxConcurrent: a.cfg.Run.MaxConcurrent, Retries: a.cfg.Run.Retries, FailFast: a.cfg.Run.FailFast,
		Drain: drain, Mask: masker(list), MaskRaw: rawMasker(list), Observer: a.progress, Logger: a.log,
	}
}

// replays is how often a rollout that a server's end took is sent again: on_exit = "restart" alone.
func (a *attempt) replays() int {
	if a.cfg.Server.OnExit != "restart" {
		return 0
	}
	return a.cfg.Server.MaxRestarts
}

// request is what every rollout sends beside its task.
func request(cfg *config.Config) rollout.Request {
	sampling := make(map[string]any, len(cfg.Model.Sampling))
	req := rollout.Request{
		Model: cfg.Model.Name, Client: cfg.Model.Client.Wire(), Sampling: sampling,
		TaskSeed: cfg.Tasks.Seed, System: cfg.Prompt.System, Template: cfg.Prompt.Template,
	}
	for k, v := range cfg.Model.Sampling {
		if seed, ok := v.(int64); ok && k == "seed" {
			req.SamplingSeed = &seed
			continue
		}
		sampling[k] = v
	}
	return req
}

// noServers stands where nothing is to be sent: only scores are owed.
type noServers struct{}

func (noServers) Bind(context.Context) (*server.Server, func(), error) {
	return nil, nil, errors.New("host: nothing is owed, yet a rollout wants a server")
}
func (noServers) Down() <-chan struct{} { return nil }
