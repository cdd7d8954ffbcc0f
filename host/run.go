package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/envserver"
	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
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

// Run executes an eval file into a new run directory and returns the run's exit code.
func (h *Host) Run(ctx context.Context, opt RunOptions) (int, error) {
	ctx, a, err := h.prepare(ctx, opt.Config, opt.Overrides, opt.Display)
	if err != nil {
		return 0, err
	}
	defer a.release(ctx)
	if err := checkLock(ctx, opt.Config, a.plugins); err != nil {
		return 0, err
	}
	if opt.DryRun {
		return 0, h.dryRun(ctx, a.cfg, a.plugins, opt.JSON)
	}
	if err := a.tryOut(ctx); err != nil {
		return 0, err
	}
	if a.run, err = journal.Create(opt.Root, a.cfg.Name, time.Now(), identity(a.cfg, a.plugins)); err != nil {
		return 0, err
	}
	a.json = opt.JSON
	return a.do(ctx)
}

// Resume goes on with a run: what is owed is run, what is finished is kept.
func (h *Host) Resume(ctx context.Context, opt ResumeOptions) (int, error) {
	dir, err := journal.Find(opt.Root, opt.Run)
	if err != nil {
		return 0, UsageError{err}
	}
	was, err := journal.ReadIdentity(dir)
	if err != nil {
		return 0, err
	}
	ctx, a, err := h.prepare(ctx, filepath.Join(dir, journal.ConfigFile), opt.Overrides, opt.Display)
	if err != nil {
		return 0, err
	}
	defer a.release(ctx)
	if err := sameRun(was, identity(a.cfg, a.plugins)); err != nil {
		return 0, err
	}
	if a.run, err = journal.Open(dir); err != nil {
		return 0, err
	}
	for _, n := range a.run.Recovered() {
		fmt.Fprintf(h.Stderr, "recovered: %s: %d bytes from byte %d (%s) are now in %s\n", n.File, n.Bytes, n.Off, n.What, n.Moved) //nolint:errcheck // best effort
	}
	if toml := a.cfg.TOML(); !bytes.Equal(toml, was.TOML) {
		if err := a.run.SetConfig(toml); err != nil {
			return 0, errors.Join(err, a.run.Close(journal.CloseEvent{At: time.Now(), ExitCode: ExitIncomplete}))
		}
	}
	a.json = opt.JSON
	if opt.ErrorsOnly {
		a.owed = errorsOf(opt.Kinds)
	}
	return a.do(ctx)
}

// prepare reads the eval file and loads its plugins. From here to a.begun the first signal ends the
// verb; the ctx that is returned is the one to use.
func (h *Host) prepare(ctx context.Context, path string, o Overrides, mode string) (context.Context, *attempt, error) {
	a := &attempt{Host: h, start: time.Now(), logs: &lateWriter{}}
	a.log = slog.New(slog.NewTextHandler(a.logs, nil))
	ctx, a.begun = h.preparing(ctx)
	err := a.load(ctx, path, o, mode)
	if err != nil {
		a.begun()
		return ctx, nil, err
	}
	return ctx, a, nil
}

func (a *attempt) load(ctx context.Context, path string, o Overrides, mode string) (err error) {
	if a.mode, err = a.displayMode(mode); err != nil {
		return err
	}
	if a.cfg, err = loadConfig(path, o); err != nil {
		return err
	}
	a.plugins, err = loadPlugins(ctx, a.cfg, a.log)
	return err
}

// tryOut finds, before there is a run directory, what would stop the run at its first step: an offline
// model whose file is broken, a task plugin that gives no first task.
func (a *attempt) tryOut(ctx context.Context) error {
	if a.cfg.Server.Kind() == config.Embedded {
		if err := envserver.Check(serveModel(&a.cfg.Model)); err != nil {
			return UsageError{fmt.Errorf("%s: [model]: %w", a.cfg.Origin("model.name"), err)}
		}
	}
	err := selected(ctx, a.plugins.tasks, &a.cfg.Tasks, func(journal.Task) error { return errEnough })
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// release gives back what prepare took.
func (a *attempt) release(ctx context.Context) {
	a.begun()
	a.plugins.close(ctx)
}

// errorsOf picks rollouts that ended in error, of the kinds where there are any.
func errorsOf(kinds []string) func(journal.State) bool {
	return func(s journal.State) bool {
		return s.Outcome == failure.Errored && (len(kinds) == 0 || slices.Contains(kinds, s.Kind))
	}
}
