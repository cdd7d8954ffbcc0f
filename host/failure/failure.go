// Package failure says why a rollout, a score or a run ended without a number.
//
// A Failure is data: it travels into journal.jsonl, summary.json and the ABI unchanged. Errors
// that can become one implement [Failer]; [Of] is the only place where an error turns into a
// Failure. The table of kinds (kinds.go) is fixed: more may be added, none is renamed. An unknown
// kind is an error and not retryable.
//
// Everything here is a value and safe for concurrent use. Standard library only.
package failure

import (
	"context"
	"errors"
	"fmt"
)

// Source names who is at fault.
type Source string

// The sources. There are no others.
const (
	Config    Source = "config"
	Plugin    Source = "plugin"
	Server    Source = "server"
	Model     Source = "model"
	Host      Source = "host"
	Cancelled Source = "cancelled"
)

// Outcome is how a rollout ended.
type Outcome string

// The outcomes. Completed and Limit are finished: scored, counted and never run again.
const (
	Completed Outcome = "completed"
	Limit     Outcome = "limit"
	Errored   Outcome = "error"
	Dropped   Outcome = "cancelled"
)

// Finished reports whether o is an attempt that counts (there is an episode to score).
func (o Outcome) Finished() bool { return o == Completed || o == Limit }

// Failure is why an outcome is an error or cancelled.
type Failure struct { //nolint:errname // it is data first: the glossary's word
	Source    Source `json:"source"`
	Kind      string `json:"kind"`
	Message   string `json:"message,omitempty"`
	Retryable bool   `json:"retryable,omitempty"`
	// Server holds the facts of an env-server's death, when that is what happened.
	Server *ServerFacts `json:"server,omitempty"`
	// Data is what a plugin attached to its own error.
	Data map[string]any `json:"data,omitempty"`
}

// ServerFacts are the facts of an env-server's end. Code and Signal exclude each other.
type ServerFacts struct {
	Attempt    int      `json:"attempt,omitempty"`
	Instance   int      `json:"instance,omitempty"`
	Generation int      `json:"generation"`
	PID        int      `json:"pid,omitempty"`
	Code       *int     `json:"code,omitempty"`
	Signal     int      `json:"signal,omitempty"`
	SignalName string   `json:"signal_name,omitempty"`
	UptimeS    float64  `json:"uptime_s"`
	Log        string   `json:"log,omitempty"` // relative to the run directory
	Tail       []string `json:"tail,omitempty"`
}

// New makes a Failure; whether it is retryable comes from the table of kinds.
func New(source Source, kind, format string, args ...any) *Failure {
	msg := format
	if len(args) > 0 {
		msg = fmt.Sprintf(format, args...)
	}
	return &Failure{Source: source, Kind: kind, Message: msg, Retryable: Retryable(source, kind)}
}

// Error is total: it works on the zero value and on nil.
func (f *Failure) Error() string {
	if f == nil {
		return "no failure"
	}
	s := string(f.Source) + ": " + f.Kind
	if f.Message != "" {
		s += ": " + f.Message
	}
	return s
}

// Failure makes *Failure a [Failer].
func (f *Failure) Failure() *Failure { return f }

// Failer is an error that knows what Failure it is.
type Failer interface {
	error
	Failure() *Failure
}

// Of turns an error into a Failure. nil gives nil; a context's end gives cancelled/caller; anything
// that is no [Failer] is host/internal, since nobody foresaw it.
func Of(err error) *Failure {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[Failer](err); ok {
		return f.Failure()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return New(Cancelled, "caller", "%v", err)
	}
	return New(Host, "internal", "%v", err)
}
