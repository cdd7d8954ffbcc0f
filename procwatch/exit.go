package procwatch

import (
	"fmt"
	"syscall"
	"time"
)

// Cause is who ended a child; the first one that happened.
type Cause string

// The causes.
const (
	CauseSelf            Cause = "self"             // it ended without our doing
	CauseStopped         Cause = "stopped"          // Stop came first
	CauseNotReady        Cause = "not_ready"        // stopped by us since ReadyTimeout passed
	CauseUnresponsive    Cause = "unresponsive"     // stopped by us since it was not alive (Spec.Liveness)
	CauseContainmentLost Cause = "containment_lost" // what held it died or took its status; Signal is a guess
)

// Exit is how a child ended. It is complete and does not change.
type Exit struct { //nolint:recvcheck // a value to all but the one function that fills it
	// Code is the exit code, -1 when a signal ended the child: 137 is a code, never a signal.
	Code int
	// Signal ended the child when Signaled; CoreDumped says that it left a core.
	Signal     syscall.Signal
	Signaled   bool
	CoreDumped bool

	Cause Cause
	// Requested: we wanted the end (Cause is stopped) before it came.
	Requested bool
	// Escalated: TERM was not enough and KILL was sent.
	Escalated bool
	// Reason is what the first Stop said.
	Reason string

	// Start and End bound the leader's life; Uptime is measured on the monotonic clock.
	Start, End time.Time
	Uptime     time.Duration

	// Usage is what the leader and those of its children that it waited for have used.
	Usage Usage

	// Tail is the last output, complete unless PipeHolders is not empty.
	Tail []Line
	// Dropped is what the sink was too slow for.
	Dropped Dropped
	// Survivors were alive when the leader died and were then killed (Linux).
	Survivors []Process
	// PipeHolders still held an output pipe open when DrainTimeout had passed (Linux).
	PipeHolders []Process
}

// Usage is what a process has used; zero where the system does not tell.
type Usage struct {
	// User and System are processor time.
	User, System time.Duration
	// MaxRSS is the largest of their resident sets, in bytes.
	MaxRSS int64
}

func usageOf(r *syscall.Rusage) Usage {
	if r == nil {
		return Usage{}
	}
	return Usage{User: time.Duration(r.Utime.Nano()), System: time.Duration(r.Stime.Nano()), MaxRSS: r.Maxrss * maxRSSUnit}
}

// Dropped counts output that the sink did not get.
type Dropped struct{ Lines, Bytes int64 }

// Process names a process as it was seen; the number may belong to another one by now.
type Process struct {
	PID  int      `json:"pid"`
	Argv []string `json:"argv"`
}

// String says how the child ended, in a few words.
func (e Exit) String() string {
	how := fmt.Sprintf("exited with code %d", e.Code)
	if e.Signaled {
		how = fmt.Sprintf("ended by signal %d (%v)", int(e.Signal), e.Signal)
	}
	if e.CoreDumped {
		how += ", core dumped"
	}
	return fmt.Sprintf("%s after %v", how, e.Uptime.Round(time.Millisecond))
}

// ExitError is an Exit where an error is wanted: the child ended and should not have.
type ExitError struct{ Exit Exit }

func (e *ExitError) Error() string { return "child " + e.Exit.String() }

// setStatus fills in code or signal.
func (e *Exit) setStatus(ws syscall.WaitStatus) {
	if ws.Signaled() {
		e.Code, e.Signal, e.Signaled, e.CoreDumped = -1, ws.Signal(), true, ws.CoreDump()
		return
	}
	e.Code = ws.ExitStatus()
}
