// Package server runs supervised env-servers and turns their death into a typed error.
//
// A [Server] is one generation: one process (procwatch) and one connection to it (zmqio), bound for
// life. Nothing is reconnected; a new life is a new Server. [Start] returns when the server is
// ready: it answered a health request and, where it is a pool, a worker answered too (Spec.Warm). The
// child's exit ends the wait at once. A [Set] is N of them side by side, with a new generation after
// an end where on_exit says so.
//
// # The exit barrier
//
// When the process ends, or the connection does, in this order: the cause is latched and nobody
// enters any more; replies that were already sent are read for at most DrainLimit and win; what is
// still in flight is cancelled, every call leaves and then waits at the barrier; the barrier opens
// when nobody is inside, or after another DrainLimit with Drained=false; then every waiting call and
// every later one returns the same error value. So no caller, and no plugin, sees the death while
// another call still holds the wire. See docs/rationale.md, "Why does a call wait for the others?".
//
// # What a dead process does not show
//
// Health is a hint: a missing answer is a warning, never an end. What a rollout has last heard is the
// sign of life: stall_after and first_reply, both off by default, go by it. A pool's broker lives on
// when its workers die and keeps sending rollouts to them, so the process tree is watched (Linux):
// once a worker is lost nothing new is sent, rollouts that have been silent for suspect_after end, and
// when none is left the generation does.
//
// # Concurrency
//
// All methods are safe for concurrent use. One goroutine (watch) owns the end of a generation, and
// waits for those that look at its life before it delivers the error. After Exited and [Server.Stop]
// no process, directory, goroutine or connection of the generation is left. Spec.Events is called
// from these goroutines.
//
// # Ownership
//
// A generation owns its directory, which is the child's TMPDIR, and its log file; both are closed or
// removed at its end. A Spec is not changed and may be shared. An error value is shared by all who get
// it: read only.
//
// # Cancellation
//
// A call whose ctx ends is cancelled on the wire and drained (zmqio); it returns context.Cause. The
// generation itself ends by its own exit, by the loss of its connection or worker, by the silence that
// the operator limited, or by [Server.Stop]; never by a ctx.
//
// # Errors
//
// [ExitedError], [ConnLostError], [WorkerLostError] and [StalledError] end a generation,
// [NotReadyError] and [StartError] say why there is none, [GaveUpError] why there is no further one;
// each implements failure.Failer.
package server
