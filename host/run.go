package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/display"
	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/report"
	"github.com/wevalr/wevalr/host/rollout"
	"github.com/wevalr/wevalr/host/server"
)

// RunOptions are those of `wevalr run`.
type RunOptions struct {
	Config    string // path of the eval file
	Overrides Overrides
	Root      string // folder of the run directories
	Display   string // auto, plain, json, none
	JSON      bool
	DryRun    bool
}

// ResumeOptions are those of `wevalr resume` and `wevalr retry`.
type ResumeOptions struct {
	Run       string // directory, id, or a unique beginning of an id
	Overrides Overrides
	Root      string
	Display   string
	JSON      bool
	// ErrorsOnly: only rollouts that ended in error are owed, of these Kinds where there are any.
	ErrorsOnly bool
	Kinds      []string
}

// attempt is one life of wevalr on a run.
type attempt struct {
	*Host
	cfg      *config.Config
	plugins  *plugins
	run      *journal.Run
	tasks    *journal.Tasks
	owed     func(journal.State) bool
	log      *slog.Logger
	progress *display.Progress
	mode     string
	json     bool
	start    time.Time
	begun    func() // ends Host.preparing
}

// Run executes an eval file into a new run directory and returns the run's exit code.
func (h *Host) Run(ctx context.Context, opt RunOptions) (int, error) {
	start := time.Now()
	ctx, begun := h.preparing(ctx)
	defer begun()
	mode, err := h.displayMode(opt.Display)
	if err != nil {
		return 0, err
	}
	cfg, err := loadConfig(opt.Config, opt.Overrides)
	if err != nil {
		return 0, err
	}
	if err := notBuilt(cfg); err != nil {
		return 0, err
	}
	logs := &lateWriter{}
	log := slog.New(slog.NewTextHandler(logs, nil))
	ps, err := loadPlugins(ctx, cfg, log)
	if err != nil {
		return 0, err
	}
	defer ps.close(ctx)
	if err := checkLock(ctx, opt.Config, ps); err != nil {
		return 0, err
	}
	if opt.DryRun {
		return 0, h.dryRun(ctx, cfg, ps, opt.JSON)
	}
	run, err := journal.Create(opt.Root, cfg.Name, time.Now(), identity(cfg, ps))
	if err != nil {
		return 0, err
	}
	a := &attempt{Host: h, cfg: cfg, plugins: ps, run: run, log: log, mode: mode, json: opt.JSON, start: start, begun: begun}
	return a.do(ctx, logs)
}

// Resume goes on with a run: what is owed is run, what is finished is kept.
func (h *Host) Resume(ctx context.Context, opt ResumeOptions) (int, error) {
	start := time.Now()
	ctx, begun := h.preparing(ctx)
	defer begun()
	mode, err := h.displayMode(opt.Display)
	if err != nil {
		return 0, err
	}
	dir, err := journal.Find(opt.Root, opt.Run)
	if err != nil {
		return 0, UsageError{err}
	}
	was, err := journal.ReadIdentity(dir)
	if err != nil {
		return 0, err
	}
	cfg, err := loadConfig(filepath.Join(dir, journal.ConfigFile), opt.Overrides)
	if err != nil {
		return 0, err
	}
	if err := notBuilt(cfg); err != nil {
		return 0, err
	}
	logs := &lateWriter{}
	log := slog.New(slog.NewTextHandler(logs, nil))
	ps, err := loadPlugins(ctx, cfg, log)
	if err != nil {
		return 0, err
	}
	defer ps.close(ctx)
	if err := sameRun(was, identity(cfg, ps)); err != nil {
		return 0, err
	}
	run, err := journal.Open(dir)
	if err != nil {
		return 0, err
	}
	for _, n := range run.Recovered() {
		fmt.Fprintf(h.Stderr, "recovered: %s: %d bytes from byte %d (%s) are now in %s\n", n.File, n.Bytes, n.Off, n.What, n.Moved) //nolint:errcheck // best effort
	}
	if toml := cfg.TOML(); !bytes.Equal(toml, was.TOML) {
		if err := run.SetConfig(toml); err != nil {
			return 0, errors.Join(err, run.Close(journal.CloseEvent{At: time.Now(), ExitCode: ExitIncomplete}))
		}
	}
	a := &attempt{Host: h, cfg: cfg, plugins: ps, run: run, log: log, mode: mode, json: opt.JSON, start: start, begun: begun}
	if opt.ErrorsOnly {
		a.owed = errorsOf(opt.Kinds)
	}
	return a.do(ctx, logs)
}

// errorsOf picks rollouts that ended in error, of the kinds where there are any.
func errorsOf(kinds []string) func(journal.State) bool {
	return func(s journal.State) bool {
		return s.Outcome == failure.Errored && (len(kinds) == 0 || slices.Contains(kinds, s.Kind))
	}
}

// do runs the attempt on the open run, writes its summary and prints its report.
func (a *attempt) do(ctx context.Context, logs *lateWriter) (int, error) {
	closed := false
	defer func() {
		if !closed {
			_ = a.run.Close(journal.CloseEvent{At: time.Now(), ExitCode: ExitIncomplete, Reason: "ended early"})
		}
	}()
	logFile, err := os.OpenFile(filepath.Join(a.run.LogDir(), "wevalr.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	defer logFile.Close()
	logs.open(logFile)
	if a.tasks, err = a.run.SpoolTasks(taskSet(ctx, a.plugins.tasks, &a.cfg.Tasks)); err != nil {
		return 0, taskError(err)
	}
	a.begun()
	end := a.execute(ctx)
	summary, err := a.summarize(end)
	if err != nil {
		return 0, err
	}
	diskErr := a.run.WriteSummary(*summary)
	if summary, err = a.complete(summary); err != nil {
		return 0, err
	}
	closed = true
	if err := errors.Join(diskErr, a.run.Close(journal.CloseEvent{At: time.Now(), ExitCode: summary.ExitCode, Reason: end.reason()})); err != nil {
		end.err = errors.Join(end.err, err)
	}
	return summary.ExitCode, a.report(summary, end)
}

// ending is how an attempt's work ended.
type ending struct {
	err         error // what stopped it: a server's death, a disk, fail_fast; nil when all was done
	died        error // the env-server's death, or its never being ready
	interrupted int   // exit code of a signal, or 0
}

func (e *ending) reason() string {
	switch {
	case e.interrupted != 0:
		return "interrupted"
	case e.died != nil:
		return firstLine(e.died.Error())
	case e.err != nil:
		return firstLine(e.err.Error())
	}
	return ""
}

// execute starts the servers, where anything is owed, and runs the engine.
func (a *attempt) execute(ctx context.Context) *ending {
	counts := a.run.Counts(a.cfg.Tasks.NumRollouts)
	a.progress = display.Start(a.Stderr, display.Options{
		Mode: a.mode, Planned: counts.Planned, Finished: counts.Completed + counts.Limit,
	})
	defer a.progress.Close()
	a.announce(counts)
	if counts.Planned == 0 {
		return &ending{err: errNothingPlanned}
	}
	watched, unwatch := context.WithCancel(ctx) // outlives the cancel that an interrupt brings
	defer unwatch()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stops := a.watch(watched, cancel, a.progress.Notice, a.leave)

	end := &ending{}
	var servers rollout.Servers = noServers{}
	if a.anythingOwed() {
		set, err := a.startServersUnless(ctx, stops.drain)
		if err != nil {
			end.interrupted = int(stops.code.Load())
			if end.err = err; end.interrupted == 0 {
				end.died = err
			}
			return end
		}
		servers = set
		defer func() { _ = set.Stop(context.WithoutCancel(ctx)) }()
	}
	res, err := rollout.Run(ctx, a.spec(servers, stops.drain))
	end.interrupted = int(stops.code.Load())
	if set, ok := servers.(*server.Set); ok {
		end.died = set.Err()
	}
	switch {
	case err != nil:
		end.err = err
	case end.died != nil:
		end.err = end.died
	case end.interrupted == 0 && res.Stopped != nil:
		end.err = res.Stopped
	}
	return end
}

// startServersUnless starts the env-servers; the first interrupt ends that, since nothing is in flight yet.
func (a *attempt) startServersUnless(ctx context.Context, drain <-chan struct{}) (*server.Set, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	started := make(chan struct{})
	defer close(started)
	go func() {
		select {
		case <-drain:
			cancel(errInterrupted)
		case <-started:
		}
	}()
	return a.startServers(ctx)
}

var errNothingPlanned = errors.New("nothing is planned: the plugin gives no task that matches")

// anythingOwed reports whether a rollout has to be sent.
func (a *attempt) anythingOwed() bool {
	for task := range a.tasks.Len() {
		for index := range a.cfg.Tasks.NumRollouts {
			st := a.run.State(task, index)
			if !st.Outcome.Finished() && (a.owed == nil || a.owed(st)) {
				return true
			}
		}
	}
	return false
}

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
		CheckEcho: a.cfg.Server.Kind() != config.Embedded, MaxConcurrent: a.cfg.Run.MaxConcurrent, Retries: a.cfg.Run.Retries, FailFast: a.cfg.Run.FailFast,
		Drain: drain, Mask: masker(list), MaskRaw: rawMasker(list), Observer: a.progress, Logger: a.log,
	}
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

// report prints what a run ends with: the table, or the one JSON object; then the paths and the command
// that goes on.
func (a *attempt) report(s *journal.Summary, end *ending) error {
	if a.json {
		if err := report.JSON(a.Stdout, s); err != nil {
			return err
		}
	} else if err := report.Text(a.Stdout, s); err != nil {
		return err
	}
	out := a.Stdout
	if a.json {
		out = a.Stderr
	}
	if !a.json || a.mode != display.None {
		fmt.Fprintf(out, "%s\n%s\n", filepath.Join(s.Run.Dir, journal.SummaryFile), filepath.Join(s.Run.Dir, journal.TracesFile)) //nolint:errcheck // the summary is out
	}
	if end.err != nil {
		fmt.Fprintf(a.Stderr, "wevalr: %v\n", end.err) //nolint:errcheck // best effort
	}
	if s.Owed > 0 {
		fmt.Fprintf(a.Stderr, "%d of %d rollouts are owed; go on with: wevalr resume %s\n", s.Owed, s.Planned, s.Run.Dir) //nolint:errcheck // best effort
	}
	return nil
}

// noServers stands where nothing is to be sent: only scores are owed.
type noServers struct{}

func (noServers) Bind() (*server.Server, func()) {
	panic("host: nothing is owed, yet a rollout wants a server")
}
func (noServers) Down() <-chan struct{} { return nil }
