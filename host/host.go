// Package host is what the wevalr binary does, as a Go library. This file is the front door.
//
// A [Host] runs verbs: Run, Resume, Show, List, Config, Serve. The way of the data is the order of the
// files: eval file (config) → plugins (plugins.go) → task set (tasks.go) → env-servers (servers.go) →
// rollouts and scores (run.go, package rollout) → summary (summary.go) → report and exit code (exit.go).
// The rooms below know nothing of each other's callers; data flows one way.
//
// # Concurrency and cancellation
//
// A Host runs one verb at a time. Signals come over a channel: the first interrupt drains, the second
// cancels what is in flight, the third leaves at once; a ctx that ends counts as the second.
//
// # Errors
//
// What a person did wrong is a [UsageError], config.Errors or a plugin's refusal; [ExitCode] maps every
// error to the exit codes of docs/operations.md. A run that came to its end has no error but a code.
package host

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/wevalr/wevalr/host/display"
	"github.com/wevalr/wevalr/procwatch"
)

// Host holds what the verbs share: where to write, and what the operator says meanwhile. Everything
// that it prints is clean of control characters.
type Host struct {
	Stdout, Stderr io.Writer
	signals        <-chan os.Signal
	exit           func(code int)
	terminal       bool
}

// New makes a Host. signals may be nil; exit ends the process, at a third interrupt.
func New(stdout, stderr io.Writer, signals <-chan os.Signal, exit func(code int)) *Host {
	return &Host{
		Stdout: display.Clean(stdout), Stderr: display.Clean(stderr),
		signals: signals, exit: exit, terminal: isTerminal(stderr),
	}
}

// isTerminal reports whether w is a terminal; in CI nothing is treated as one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("CI") != "" {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && !os.SameFile(info, null)
}

// Reexec must be the first call of main: a wevalr that was started as the warden of an env-server's
// process tree does its work here and never returns.
func Reexec() { procwatch.Main() }

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
