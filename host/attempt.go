package host

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/display"
	"github.com/wevalr/wevalr/host/journal"
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
