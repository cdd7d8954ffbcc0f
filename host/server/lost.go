package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/wevalr/wevalr/host/failure"
)

// WorkerLostError says that a worker of the env-server's pool has ended, while the env-server itself
// lives and does not notice.
type WorkerLostError struct {
	Life
	Ending
	Worker   int // its process id
	Argv     []string
	InFlight int // rollouts of the whole pool
}

func (e *WorkerLostError) text() string { return fmt.Sprintf(": its worker %d %s", e.Worker, e.How()) }

func (e *WorkerLostError) Error() string {
	return fmt.Sprintf("%s%s, and the pool goes on without it; %s in flight%s", e.who(), e.text(), rolloutsWere(e.InFlight), e.log())
}

// Failure is {server, worker_lost} with the worker's facts.
func (e *WorkerLostError) Failure() *failure.Failure {
	f := e.failed("worker_lost", "%s", e.text())
	f.Server.PID = e.Worker
	e.put(f.Server)
	return f
}

// StalledError says that nothing came back for a rollout for longer than the operator allows.
type StalledError struct {
	Life
	Silent time.Duration // since the last delta, or since it was sent
	Deltas int64         // that had come before
	First  bool          // first_reply: nothing ever came of this generation

	at       time.Time // when it was noticed
	received int64     // replies that the connection had brought by then
}

func (e *StalledError) text() string {
	if e.First {
		return fmt.Sprintf(": nothing came back for the first rollout within %s (first_reply)", seconds(e.Silent))
	}
	return fmt.Sprintf(": nothing came back for a rollout for %s, after %d deltas (stall_after)", seconds(e.Silent), e.Deltas)
}

func (e *StalledError) Error() string { return e.who() + e.text() + e.log() }

// Failure is {server, stalled}.
func (e *StalledError) Failure() *failure.Failure { return e.failed("stalled", "%s", e.text()) }

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
