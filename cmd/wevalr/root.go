package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wevalr/wevalr/host"
)

// app is what every verb shares.
type app struct {
	host    *host.Host
	signals chan os.Signal
	json    bool
	code    int // of the verb that ran, when it ended without an error
}

// execute runs one command line and returns its exit code: docs/operations.md, "Exit codes".
func execute(args []string, stdout, stderr io.Writer, exit func(int)) int {
	signals := make(chan os.Signal, 8)
	a := &app{host: host.New(stdout, stderr, signals, exit), signals: signals}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.host.Stdout)
	root.SetErr(a.host.Stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return a.code
	}
	code := host.ExitCode(err)
	if a.json {
		a.printError(err, code)
	}
	fmt.Fprintln(a.host.Stderr, "wevalr: "+err.Error()) //nolint:errcheck // nowhere left to say it
	return code
}

// listen hands interrupts to the host. Only verbs that have something to drain call it: all others end at
// the first interrupt, or when nobody reads their output any more, as any program does. A run goes on
// without its readers: SIGPIPE is caught, not ignored, since an ignored signal stays ignored in children. It listens until
// the process ends: one more interrupt at the very last changes no exit code.
func (a *app) listen() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signal.Notify(a.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// printError is the one error object that --json promises when there is no summary.
func (a *app) printError(err error, code int) {
	enc := json.NewEncoder(a.host.Stdout)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]any{"format": "wevalr.error/1", "error": err.Error(), "exit_code": code})
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "wevalr",
		Short:         "Run LLM and agent evaluations with sandboxed tasks and scorers",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return c.Help()
		},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return host.UsageError{Err: fmt.Errorf("%w; see '%s --help'", err, c.CommandPath())}
	})
	root.AddCommand(
		a.runCmd(), a.resumeCmd(), a.retryCmd(), a.rescoreCmd(), a.showCmd(), a.lsCmd(),
		a.serveCmd(), a.configCmd(), a.pluginCmd(), a.versionCmd(),
	)
	return root
}

// usage turns cobra's own complaints (a wrong number of arguments, an unknown verb) into usage errors.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return host.UsageError{Err: fmt.Errorf("%w\n  usage: %s", err, c.UseLine())}
		}
		return nil
	}
}

// ended keeps the exit code of a run that came to its end.
func (a *app) ended(code int, err error) error {
	a.code = code
	return err
}
