package host

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/display"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/server"
)

// notBuilt refuses what the eval file may say and this version cannot do yet: a key that has no effect
// would be a promise that is not kept.
func notBuilt(cfg *config.Config) error {
	var b strings.Builder
	refuse := func(on bool, key, instead string) {
		if on {
			fmt.Fprintf(&b, "\n%s: %s: not built yet; %s", cfg.Origin(key), key, instead)
		}
	}
	s := &cfg.Server
	refuse(s.OnExit == "restart", "server.on_exit", `write "fail", and go on with wevalr resume`)
	refuse(s.OnWorkerExit != "auto", "server.on_worker_exit", "leave it out, and use instances = N: wevalr is then the pool")
	refuse(s.StallAfter > 0, "server.stall_after", "leave it out: a healthy rollout has no time limit")
	refuse(s.FirstReply > 0, "server.first_reply", "leave it out")
	refuse(s.Warm == "on", "server.warm", "leave it out")
	refuse(s.Containment == "cgroup", "server.containment", `write "warden" or leave it out`)
	if b.Len() == 0 {
		return nil
	}
	return UsageError{errors.New(strings.TrimPrefix(b.String(), "\n"))}
}

// displayMode resolves --display.
func (h *Host) displayMode(mode string) (string, error) {
	switch mode {
	case "", "auto", display.Plain:
		return display.Plain, nil
	case display.JSON, display.None:
		return mode, nil
	case "tui":
		return "", UsageError{errors.New("--display tui: not built yet; use plain or json")}
	}
	return "", UsageError{fmt.Errorf("--display %q: not one of auto, plain, json, none", mode)}
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

func (a *attempt) recordStarted(set *server.Set) {
	for _, s := range set.Servers() {
		a.record(journal.ServerEvent{
			At: time.Now(), Event: journal.ServerReady, Instance: s.Instance(), Generation: s.Generation(),
			PID: s.PID(), Log: s.Log(), Reason: "containment " + s.Containment(),
		})
		a.progress.Notice(fmt.Sprintf("env-server ready: pid %d, containment %s, log %s", s.PID(), s.Containment(), s.Log()))
	}
}

// recordEnded writes how each server ended, ours or its own doing.
func (a *attempt) recordEnded(set *server.Set) {
	for _, s := range set.Servers() {
		a.record(serverEnd(s.Instance(), s.Generation(), s.Log(), s.Err()))
	}
}

// recordNotReady writes the end of a server that never answered.
func (a *attempt) recordNotReady(err error) {
	if nr, ok := errors.AsType[*server.NotReadyError](err); ok && nr.Exited != nil {
		a.record(serverEnd(nr.Exited.Instance, nr.Exited.Generation, nr.Exited.LogRel, nr.Exited))
	}
}

func serverEnd(instance, generation int, log string, err error) journal.ServerEvent {
	ev := journal.ServerEvent{At: time.Now(), Event: journal.ServerExited, Instance: instance, Generation: generation, Log: log}
	var exited *server.ExitedError
	var lost *server.ConnLostError
	switch {
	case errors.As(err, &exited):
		ev.PID, ev.UptimeS = exited.PID, exited.Uptime.Seconds()
		if exited.Signal != 0 {
			n := int(exited.Signal)
			ev.Signal = &n
		} else {
			code := exited.Code
			ev.Code = &code
		}
		if exited.Requested {
			ev.Reason = "stopped by wevalr"
		}
	case errors.As(err, &lost):
		ev.PID, ev.UptimeS, ev.Reason = lost.PID, lost.Uptime.Seconds(), "connection lost: "+lost.Cause.Error()
	}
	return ev
}

func (a *attempt) record(ev journal.ServerEvent) {
	if err := a.run.Server(ev); err != nil {
		a.log.Warn("server event not recorded", slog.Any("err", err))
	}
}

// taskError says whose fault a task set is: a changed one is the operator's business.
func taskError(err error) error {
	if _, ok := errors.AsType[*journal.TaskSetError](err); ok {
		return UsageError{fmt.Errorf("%w\n  the tasks of a run may grow at their end, and change in no other way; start a new run with wevalr run", err)}
	}
	return err
}

// lateWriter holds what is logged until the run directory is there.
type lateWriter struct {
	mu   sync.Mutex
	w    io.Writer
	held []byte
}

func (l *lateWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		l.held = append(l.held, p...)
		return len(p), nil
	}
	return l.w.Write(p)
}

func (l *lateWriter) open(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w = w
	_, _ = w.Write(l.held)
	l.held = nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
