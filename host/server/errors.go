package server

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// ExitedError says that the env-server's process has ended: with a code, 0 included, xor by a signal.
// Every call of the generation gets the same value.
type ExitedError struct {
	Attempt, Instance, Generation int
	PID                           int
	Code                          int            // meaningful when Signal is 0
	Signal                        syscall.Signal // 0: it exited by itself
	CoreDumped                    bool
	Requested                     bool // by our own Stop
	Uptime                        time.Duration
	InFlight                      int  // rollouts on the wire when it died
	Drained                       bool // every call had left when the error was delivered
	LogPath                       string
	LogRel                        string
	Tail                          []string // the last lines it said
}

// How says how it ended: "exited with code 23", "was ended by signal 9 (killed)".
func (e *ExitedError) How() string {
	if e.Signal != 0 {
		return fmt.Sprintf("was ended by signal %d (%v)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

func (e *ExitedError) Error() string {
	return fmt.Sprintf("env-server (generation %d, pid %d) %s after %s; %s in flight; log: %s%s",
		e.Generation, e.PID, e.How(), seconds(e.Uptime), rolloutsWere(e.InFlight), e.LogPath, tailText(e.Tail))
}

// Failure is {server, exited} with the facts.
func (e *ExitedError) Failure() *failure.Failure {
	f := failure.New(failure.Server, "exited", "env-server (generation %d) %s after %s; %s in flight",
		e.Generation, e.How(), seconds(e.Uptime), rolloutsWere(e.InFlight))
	f.Server = &failure.ServerFacts{
		Attempt: e.Attempt, Instance: e.Instance, Generation: e.Generation, PID: e.PID,
		UptimeS: e.Uptime.Seconds(), Log: e.LogRel, Tail: e.Tail,
	}
	if e.Signal != 0 {
		f.Server.Signal, f.Server.SignalName = int(e.Signal), e.Signal.String()
	} else {
		code := e.Code
		f.Server.Code = &code
	}
	return f
}

// ConnLostError says that the connection ended while the process, as far as can be seen, lives.
type ConnLostError struct {
	Attempt, Instance, Generation int
	PID                           int    // 0 for a server that somebody else runs
	Address                       string // set for a server that somebody else runs
	Cause                         error
	Uptime                        time.Duration
	InFlight                      int
	Exit                          *ExitedError  // how the process ended once it was told to; nil: it was not, or did not
	StopTook                      time.Duration // from being told to until Exit
	LogPath, LogRel               string
	Tail                          []string
}

// after says what was in flight, and how the process then ended.
func (e *ConnLostError) after() string {
	s := rolloutsWere(e.InFlight) + " in flight"
	if e.Exit != nil {
		s += fmt.Sprintf("; told to end, it %s after %s", e.Exit.How(), seconds(e.StopTook))
	}
	return s
}

// why is the cause. An answer of a form that zmqio does not know is one of a newer protocol.
func (e *ConnLostError) why() string {
	if p, ok := errors.AsType[*zmqio.ProtocolError](e.Cause); ok && strings.HasPrefix(p.Text, "answer of ") {
		return wire.Newer + p.Text
	}
	return fmt.Sprint(e.Cause)
}

func (e *ConnLostError) Error() string {
	if e.Address != "" {
		return fmt.Sprintf("env-server at %s: connection lost after %s: %s; %s in flight; whether its process lives cannot be seen from here",
			e.Address, seconds(e.Uptime), e.why(), rolloutsWere(e.InFlight))
	}
	return fmt.Sprintf("env-server (generation %d, pid %d): connection lost after %s, though its process lived: %s; %s; log: %s%s",
		e.Generation, e.PID, seconds(e.Uptime), e.why(), e.after(), e.LogPath, tailText(e.Tail))
}

// Unwrap gives what the wire saw.
func (e *ConnLostError) Unwrap() error { return e.Cause }

// Failure is {server, connection_lost} with the facts.
func (e *ConnLostError) Failure() *failure.Failure {
	f := failure.New(failure.Server, "connection_lost", "env-server (generation %d): connection lost after %s: %s; %s",
		e.Generation, seconds(e.Uptime), e.why(), e.after())
	f.Server = &failure.ServerFacts{
		Attempt: e.Attempt, Instance: e.Instance, Generation: e.Generation, PID: e.PID,
		UptimeS: e.Uptime.Seconds(), Log: e.LogRel, Tail: e.Tail,
	}
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

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func rolloutsWere(n int) string {
	if n == 1 {
		return "1 rollout was"
	}
	return fmt.Sprintf("%d rollouts were", n)
}

// tailText renders the last lines for a person; records hold all of them.
func tailText(tail []string) string {
	if len(tail) == 0 {
		return ""
	}
	const shown = 10
	if len(tail) > shown {
		tail = tail[len(tail)-shown:]
	}
	return "\nlast lines:\n  " + strings.Join(tail, "\n  ")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
