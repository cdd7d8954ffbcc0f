package host

import (
	"errors"
	"strings"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
)

// Exit codes. Several may apply: 130/143 > 4 > 3 > 1. Unknown means failure.
const (
	ExitOK         = 0
	ExitGate       = 1   // a gate or threshold failed
	ExitUsage      = 2   // usage, configuration, plugin refused
	ExitIncomplete = 3   // too many errors, nothing planned or scored, a disk that takes no records
	ExitServer     = 4   // the env-server died or was lost
	ExitInterrupt  = 130 // SIGINT
	ExitTerminated = 143 // SIGTERM, SIGHUP
)

// UsageError is a command line that cannot be run.
type UsageError struct{ Err error }

func (e UsageError) Error() string {
	if e.Err == nil {
		return "usage error"
	}
	return e.Err.Error()
}

// Unwrap gives the cause.
func (e UsageError) Unwrap() error { return e.Err }

// ExitCode maps an error that ended a verb to its exit code.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	var usage UsageError
	var locked *journal.LockedError
	var stop *interruptedError
	switch {
	case errors.As(err, &stop):
		return stop.code
	case errors.As(err, &usage), errors.As(err, &locked):
		return ExitUsage
	}
	switch failure.Of(err).Source {
	case failure.Config, failure.Plugin:
		return ExitUsage
	case failure.Server:
		return ExitServer
	default:
		return ExitIncomplete
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
