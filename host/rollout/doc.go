// Package rollout is the engine: plan → dispatch → drive → score → record.
//
// It takes the owed part of a run (tasks × rollouts − what the journal has), sends each rollout to
// an env-server, by the host itself or by a plugin that drives, makes the episode durable, then has
// it scored. It is the one place that maps the env-server's words (wire, server) to the plugins'
// (abi): request.go one way, view.go and env.go the other.
//
// # Concurrency
//
// MaxConcurrent bounds requests to env-servers; a second, larger bound holds rollouts that are
// answered and not yet durable. Scoring has workers of its own and never blocks a rollout: when it
// lags it reads episodes back from the disk.
//
// # Cancellation
//
// Closing Spec.Drain ends admission, and what is in flight goes on; ctx's end cancels what is in flight,
// and the cancels are drained. A server's death ends admission; see package server for what the calls
// in flight get.
//
// # Errors
//
// A rollout's failure is a record, not an error. [Run] returns an error only for what ends the whole
// attempt: a disk that does not take records.
package rollout
