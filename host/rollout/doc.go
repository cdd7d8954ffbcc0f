// Package rollout is the engine: plan → dispatch → drive → score → record.
//
// It takes the owed part of a run (tasks × rollouts − what the journal has), sends each rollout to
// an env-server, by the host itself or by a plugin that drives, makes the episode durable, then has
// it scored. It is the one place that maps the env-server's words (wire, server) to the plugins'
// (abi): request.go one way, view.go and enverror.go the other.
//
// What is scored is what is on disk: a scorer gets a view of the episode's line in traces.jsonl,
// secrets masked, whether the rollout has just ended or was finished by an earlier attempt.
//
// # Concurrency
//
// MaxConcurrent bounds requests to env-servers; a second, larger bound holds rollouts that are
// answered and not yet durable. Scoring has workers of its own and never blocks a rollout: lines
// that wait for a scorer are held up to 16 MiB, and those past that are read back from the disk.
//
// # Ownership
//
// Journal, plugins and servers are the caller's, before and after. One try of a rollout is bound to
// one generation of one server from its dispatch to its record.
//
// # Cancellation
//
// Closing Spec.Drain ends admission, and what is in flight goes on; ctx's end cancels what is in flight,
// and the cancels are drained. A server's death ends admission; see package server for what the calls
// in flight get. A rollout that was dispatched and never sent is left without a finish: never run.
//
// # Errors
//
// A rollout's failure is a record, not an error. [Run] returns an error only for what ends the whole
// attempt: a disk that does not take records ([journal.DiskError]), and a server that does not know
// the run's tasks ([EchoError]).
package rollout
