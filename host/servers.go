package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/server"
)

// healthEvery is how often a server is asked for health while it works: a hint for the operator, since
// a busy server may well be late.
const healthEvery = 30 * time.Second

// startServers starts the env-servers that the eval file names and waits until they are ready.
func (a *attempt) startServers(ctx context.Context) (*server.Set, error) {
	argv, err := serverArgv(a.cfg, a.run)
	if err != nil {
		return nil, err
	}
	c := &a.cfg.Server
	specs := make([]server.Spec, c.Instances)
	for i := range specs {
		rel := filepath.Join(journal.LogsDir, filepath.Base(a.run.LogDir()), fmt.Sprintf("server-%d-{generation}.log", i+1))
		specs[i] = server.Spec{
			Argv: argv, Env: serverEnv(a.cfg), Dir: c.Cwd, Address: c.Address, Transport: c.Transport,
			Attempt: a.run.Attempt(), Instance: i + 1, Generation: 1,
			LogPath: filepath.Join(a.run.Dir(), rel), LogRel: rel,
			StartTimeout: c.StartTimeout, CancelGrace: c.CancelGrace, StopGrace: c.StopGrace, DrainLimit: c.DrainLimit, Settle: c.Settle,
			Warm: c.Warm, FirstReply: c.FirstReply, StallAfter: c.StallAfter,
			OnWorkerExit: c.OnWorkerExit, SuspectAfter: c.SuspectAfter, HealthEvery: healthEvery,
			OnExit: c.OnExit, MaxRestarts: c.MaxRestarts, RestartWindow: c.RestartWindow, Events: a.serverEvent,
			ReplyMax: int64(c.ReplyMaxMiB) << 20, Budget: int64(a.cfg.Run.ReplyBudgetMiB) << 20,
			Containment: c.Containment, Logger: a.log,
		}
	}
	set, err := server.StartSet(ctx, specs)
	if err != nil {
		return nil, err
	}
	for _, s := range set.Servers() {
		where := "pid " + strconv.Itoa(s.PID()) + ", containment " + s.Containment()
		if c.Address != "" {
			where = "at " + c.Address
		}
		a.progress.Notice(fmt.Sprintf("env-server ready: %s, log %s", where, s.Log()))
	}
	return set, nil
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
