// Package server runs one supervised env-server and turns its death into a typed error.
//
// A [Server] is one generation: one process (procwatch) and one connection to it (zmqio), bound for
// life. Nothing is reconnected; a new life is a new Server. [Start] returns when the server is
// ready: it answered a health request. The child's exit ends the wait at once.
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
// # Concurrency
//
// All methods are safe for concurrent use. One goroutine (watch) owns the end of the generation.
//
// # Cancellation
//
// A call whose ctx ends is cancelled on the wire and drained (zmqio); it returns context.Cause. The
// generation itself ends only by its own exit or by [Server.Stop].
//
// # Errors
//
// [ExitedError], [ConnLostError], [NotReadyError] and [StartError] each implement failure.Failer.
package server
