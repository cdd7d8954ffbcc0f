package server

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/wevalr/wevalr/host/failure"
)

// WorkerLostError says that a worker of the env-server's pool has ended, with a code xor by a signal,
// while the env-server itself lives and does not notice.
type WorkerLostError struct {
	Attempt, Instance, Generation int
	PID                           int // the worker's
	Leader                        int
	Argv                          []string
	Code                          int            // meaningful when Signal is 0
	Signal                        syscall.Signal // 0: it exited by itself
	InFlight                      int            // rollouts of the whole pool
	LogPath, LogRel               string
	Tail                          []string // of the whole pool
}

func (e *WorkerLostError) how() string {
	if e.Signal != 0 {
		return fmt.Sprintf("was ended by signal %d (%v)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

func (e *WorkerLostError) Error() string {
	return fmt.Sprintf("env-server (generation %d, pid %d): its worker %d %s, and the pool goes on without it; %s in flight; log: %s%s",
		e.Generation, e.Leader, e.PID, e.how(), rolloutsWere(e.InFlight), e.LogPath, tailText(e.Tail))
}

// Failure is {server, worker_lost} with the worker's facts.
func (e *WorkerLostError) Failure() *failure.Failure {
	f := failure.New(failure.Server, "worker_lost", "env-server (generation %d): its worker %d %s", e.Generation, e.PID, e.how())
	f.Server = &failure.ServerFacts{
		Attempt: e.Attempt, Instance: e.Instance, Generation: e.Generation, PID: e.PID, Log: e.LogRel, Tail: e.Tail,
	}
	if e.Signal != 0 {
		f.Server.Signal, f.Server.SignalName = int(e.Signal), e.Signal.String()
	} else {
		code := e.Code
		f.Server.Code = &code
	}
	return f
}

// StalledError says that nothing came back for a rollout for longer than the operator allows.
type StalledError struct {
	Attempt, Instance, Generation int
	PID                           int
	Silent                        time.Duration // since the last delta, or since it was sent
	Deltas                        int64         // that had come before
	First                         bool          // first_reply: nothing ever came of this generation
	LogPath, LogRel               string
	Tail                          []string

	at       time.Time // when it was noticed
	received int64     // replies that the connection had brought by then
}

func (e *StalledError) what() string {
	if e.First {
		return fmt.Sprintf("nothing came back for the first rollout within %s (first_reply)", seconds(e.Silent))
	}
	return fmt.Sprintf("nothing came back for a rollout for %s, after %d deltas (stall_after)", seconds(e.Silent), e.Deltas)
}

func (e *StalledError) Error() string {
	return fmt.Sprintf("env-server (generation %d, pid %d): %s; log: %s%s", e.Generation, e.PID, e.what(), e.LogPath, tailText(e.Tail))
}

// Failure is {server, stalled}.
func (e *StalledError) Failure() *failure.Failure {
	f := failure.New(failure.Server, "stalled", "env-server (generation %d): %s", e.Generation, e.what())
	f.Server = &failure.ServerFacts{
		Attempt: e.Attempt, Instance: e.Instance, Generation: e.Generation, PID: e.PID, Log: e.LogRel, Tail: e.Tail,
	}
	return f
}

// UnresponsiveError is a hint: a living server does not answer health.
type UnresponsiveError struct {
	For      time.Duration
	InFlight int
	Silent   time.Duration // of the rollout that has heard nothing for longest
}

func (e *UnresponsiveError) Error() string {
	return fmt.Sprintf("env-server does not answer health for %s, though its process lives; %s in flight, one silent for %s",
		seconds(e.For), rolloutsWere(e.InFlight), seconds(e.Silent))
}

// GaveUpError says that on_exit = "restart" starts no further generation.
type GaveUpError struct {
	Instance int
	Restarts int // within Window
	Window   time.Duration
	Last     error // how the last generation ended
}

func (e *GaveUpError) Error() string {
	last := "unknown"
	if e.Last != nil {
		last = e.Last.Error()
	}
	return strings.TrimRight(fmt.Sprintf("env-server %d is not started again, after %d restarts within %v: %s", e.Instance, e.Restarts, e.Window, last), "\n")
}

// Unwrap gives how the last generation ended.
func (e *GaveUpError) Unwrap() error { return e.Last }

// Failure is the last generation's.
func (e *GaveUpError) Failure() *failure.Failure {
	if e.Last == nil {
		return failure.New(failure.Server, "exited", "%s", e.Error())
	}
	return failure.Of(e.Last)
}
