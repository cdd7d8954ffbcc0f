package server

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// ExitedError says that the env-server's process has ended. Every call of the generation gets the same
// value.
type ExitedError struct {
	Life
	Ending
	CoreDumped bool
	Requested  bool // by our own Stop
	Uptime     time.Duration
	InFlight   int  // rollouts on the wire when it died
	Drained    bool // every call had left when the error was delivered
}

func (e *ExitedError) text() string {
	return fmt.Sprintf(" %s after %s; %s in flight", e.How(), seconds(e.Uptime), rolloutsWere(e.InFlight))
}

func (e *ExitedError) Error() string { return e.who() + e.text() + e.log() }

// Failure is {server, exited} with the facts.
func (e *ExitedError) Failure() *failure.Failure {
	f := e.failed("exited", "%s", e.text())
	f.Server.UptimeS = e.Uptime.Seconds()
	e.put(f.Server)
	return f
}

// ConnLostError says that the connection ended while the process, as far as can be seen, lived.
type ConnLostError struct {
	Life
	Address  string // set for a server that somebody else runs
	Cause    error
	Uptime   time.Duration
	InFlight int
	Exit     *ExitedError  // how the process ended once it was told to; nil: it was not, or did not
	StopTook time.Duration // from being told to until Exit
}

// why is the cause. An answer of a form that zmqio does not know is one of a newer protocol.
func (e *ConnLostError) why() string {
	if p, ok := errors.AsType[*zmqio.ProtocolError](e.Cause); ok && strings.HasPrefix(p.Text, "answer of ") {
		return wire.Newer + p.Text
	}
	return fmt.Sprint(e.Cause)
}

// text says why, what was in flight, and how the process then ended.
func (e *ConnLostError) text() string {
	s := fmt.Sprintf("%s; %s in flight", e.why(), rolloutsWere(e.InFlight))
	if e.Exit != nil {
		s += fmt.Sprintf("; told to end, it %s after %s", e.Exit.How(), seconds(e.StopTook))
	}
	return s
}

func (e *ConnLostError) Error() string {
	if e.Address != "" {
		return fmt.Sprintf("env-server at %s: connection lost after %s: %s; whether its process lives cannot be seen from here",
			e.Address, seconds(e.Uptime), e.text())
	}
	return fmt.Sprintf("%s: connection lost after %s, though its process lived: %s%s", e.who(), seconds(e.Uptime), e.text(), e.log())
}

// Unwrap gives what the wire saw.
func (e *ConnLostError) Unwrap() error { return e.Cause }

// Failure is {server, connection_lost} with the facts.
func (e *ConnLostError) Failure() *failure.Failure {
	f := e.failed("connection_lost", ": connection lost after %s: %s", seconds(e.Uptime), e.text())
	f.Server.UptimeS = e.Uptime.Seconds()
	return f
}

// NotReadyError says that the server never answered: its exit (Exited is set), or the timeout.
type NotReadyError struct {
	After     time.Duration
	Exited    *ExitedError // nil: it lived, and was stopped
	Warming   bool         // it answered health, and no worker answered
	LastProbe error
	LogPath   string
	Tail      []string
}

func (e *NotReadyError) Error() string {
	if e.Exited != nil {
		return fmt.Sprintf("env-server (pid %d) %s after %s, before it was ready; log: %s%s",
			e.Exited.PID, e.Exited.How(), seconds(e.Exited.Uptime), e.LogPath, tailText(e.Tail))
	}
	s := fmt.Sprintf("env-server was not ready after %s", seconds(e.After))
	if e.Warming {
		s += ": it answers health, but none of its workers has answered"
	}
	if e.LastProbe != nil {
		text := e.LastProbe.Error()
		if odd, ok := errors.AsType[*wire.ProtocolError](e.LastProbe); ok {
			text = odd.Failure().Message
		}
		s += fmt.Sprintf(" (last try: %s)", firstLine(text))
	}
	if e.LogPath != "" {
		s += "; log: " + e.LogPath
	}
	return s + tailText(e.Tail)
}

// Failure is {server, not_ready}.
func (e *NotReadyError) Failure() *failure.Failure {
	f := failure.New(failure.Server, "not_ready", "%s", firstLine(e.Error()))
	var worker *WorkerLostError
	switch {
	case e.Exited != nil:
		f.Server = e.Exited.Failure().Server
	case errors.As(e.LastProbe, &worker):
		f.Server = worker.Failure().Server
	}
	return f
}

// StartError says that the process could not be started at all.
type StartError struct{ Cause error }

func (e *StartError) Error() string { return fmt.Sprintf("env-server: start: %v", e.Cause) }

// Unwrap gives procwatch's error.
func (e *StartError) Unwrap() error { return e.Cause }

// Failure is {server, not_ready}.
func (e *StartError) Failure() *failure.Failure {
	return failure.New(failure.Server, "not_ready", "%s", firstLine(e.Error()))
}

// PeerError is a `success: false` reply: the server lives and said no.
type PeerError struct{ Text string }

func (e *PeerError) Error() string { return "env-server: " + e.Text }

// Failure is {server, refused} or {server, peer_error}.
func (e *PeerError) Failure() *failure.Failure { return wire.PeerFailure(e.Text) }

// TooLargeError is an answer that went past reply_max_mib, or all of them together past the budget.
type TooLargeError struct{ Cause error }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("env-server: answer too large: %v", e.Cause)
}

// Unwrap gives what the wire saw.
func (e *TooLargeError) Unwrap() error { return e.Cause }

// Failure is {server, too_large}.
func (e *TooLargeError) Failure() *failure.Failure {
	return failure.New(failure.Server, "too_large", "%v", e.Cause)
}
