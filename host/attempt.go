package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/display"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/report"
	"github.com/wevalr/wevalr/host/rollout"
	"github.com/wevalr/wevalr/host/server"
)

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
	logs     *lateWriter
	leftOut  bool // numbers that the summary has no place for
}

// do runs the attempt on the open run, writes its summary and prints its report.
func (a *attempt) do(ctx context.Context) (int, error) {
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
	a.logs.open(logFile)
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
	closeErr := a.run.Close(journal.CloseEvent{At: time.Now(), ExitCode: summary.ExitCode, Reason: end.reason()})
	if broken := a.run.Err(); broken != nil && errors.Is(end.err, broken) {
		closeErr = nil // it is what ended the attempt
	}
	if err := errors.Join(diskErr, closeErr); err != nil {
		end.err = errors.Join(end.err, err)
	}
	if err := a.report(summary, end); err != nil {
		if summary.ExitCode == ExitOK {
			return 0, err
		}
		fmt.Fprintf(a.Stderr, "wevalr: %v\n", err) //nolint:errcheck // best effort; how the run ended is worse
	}
	return summary.ExitCode, nil
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
		Mode: a.mode, Interval: a.interval(), Planned: counts.Planned, Finished: counts.Completed + counts.Limit,
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
	stops := a.watch(watched, cancel, operator{
		say: a.progress.Notice, draining: a.progress.Draining, leave: a.leave, resume: "wevalr resume " + a.run.Dir(),
	})

	end := &ending{}
	var servers rollout.Servers = noServers{}
	owed := a.anythingOwed()
	if !owed && a.owed != nil {
		a.progress.Notice("retry: no rollout ended in such an error; " + kinds(a.run.Failures(a.cfg.Tasks.NumRollouts)))
	}
	if owed {
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

// kinds lists what kinds of failure a run has, for who asked for others.
func kinds(all []journal.FailureCount) string {
	if len(all) == 0 {
		return "the run has no errors"
	}
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = fmt.Sprintf("%s (%d)", f.Kind, f.Count)
	}
	return "the run has: " + strings.Join(names, ", ")
}

// interval is how often progress is printed: a person at a terminal looks more often than a log.
func (a *attempt) interval() time.Duration {
	if a.terminal {
		return time.Second
	}
	return 5 * time.Second
}

// announce says what is about to happen, in one or two lines.
func (a *attempt) announce(c journal.Counts) {
	what := fmt.Sprintf("%s: %d tasks × %d rollouts = %d", a.cfg.Name, a.tasks.Len(), a.cfg.Tasks.NumRollouts, c.Planned)
	if done := c.Completed + c.Limit; done > 0 {
		what += fmt.Sprintf(", %d finished before", done)
	}
	a.progress.Notice(what + " → " + a.run.Dir())
}

// leave ends the process at a third interrupt, after saying what it may leave behind.
func (a *attempt) leave(code int) {
	a.progress.Notice("what may be left behind: the env-servers of " + a.run.Dir() + "/" + journal.LogsDir + " until their warden has swept")
	a.exit(code)
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
