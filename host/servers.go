package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/server"
)

// startServers starts the env-servers that the eval file names and waits until they are ready.
func startServers(ctx context.Context, cfg *config.Config, run *journal.Run, log *slog.Logger) (*server.Set, error) {
	argv, err := serverArgv(cfg, run)
	if err != nil {
		return nil, err
	}
	specs := make([]server.Spec, cfg.Server.Instances)
	for i := range specs {
		rel := filepath.Join(journal.LogsDir, filepath.Base(run.LogDir()), fmt.Sprintf("server-%d-1.log", i+1))
		specs[i] = server.Spec{
			Argv: argv, Env: serverEnv(cfg), Dir: cfg.Server.Cwd,
			Address: cfg.Server.Address, Transport: cfg.Server.Transport,
			Attempt: run.Attempt(), Instance: i + 1, Generation: 1,
			LogPath: filepath.Join(run.Dir(), rel), LogRel: rel,
			StartTimeout: cfg.Server.StartTimeout, CancelGrace: cfg.Server.CancelGrace,
			StopGrace: cfg.Server.StopGrace, DrainLimit: cfg.Server.DrainLimit, Settle: cfg.Server.Settle,
			ReplyMax: int64(cfg.Server.ReplyMaxMiB) << 20, Budget: int64(cfg.Run.ReplyBudgetMiB) << 20,
			Containment: cfg.Server.Containment, Logger: log,
		}
	}
	return server.StartSet(ctx, specs)
}

// serverArgv is the command of the eval file, or wevalr itself as the embedded env-server.
func serverArgv(cfg *config.Config, run *journal.Run) ([]string, error) {
	if cfg.Server.Kind() != config.Embedded {
		return cfg.Server.Command, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the embedded env-server: %w", err)
	}
	path, err := filepath.Abs(filepath.Join(run.LogDir(), "serve.toml"))
	if err != nil {
		return nil, fmt.Errorf("the embedded env-server's config: %w", err)
	}
	if err := os.WriteFile(path, cfg.Model.TOML(), 0o600); err != nil {
		return nil, fmt.Errorf("the embedded env-server's config: %w", err)
	}
	argv := []string{self, "serve", "--address", "{address}", "--config", path}
	if cfg.Server.Transport == "tcp" {
		argv = append(argv, "--allow-tcp")
	}
	return argv, nil
}

// always lists the variables that every env-server gets; LC_* too.
func always() []string { return []string{"PATH", "HOME", "USER", "LANG", "TZ"} }

// serverEnv is the env-server's whole environment: nothing else of ours is passed on. The embedded
// one also gets exactly the variables that client names.
func serverEnv(cfg *config.Config) []string {
	names := append(always(), cfg.Server.Env...)
	if cfg.Server.Kind() == config.Embedded {
		names = append(names, clientVars(cfg)...)
	}
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(names, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	return env
}

// clientVars lists the variables that the model's client names.
func clientVars(cfg *config.Config) []string {
	var names []string
	if v := cfg.Model.Client.APIKeyVar; v != "" {
		names = append(names, v)
	}
	for _, v := range cfg.Model.Client.HeadersFromEnv {
		names = append(names, v)
	}
	return names
}
