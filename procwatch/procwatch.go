// Package procwatch runs one child process and knows one truth about it: how it ended, what it said
// last, and that nothing of it is left behind.
//
//	p, err := procwatch.Start(ctx, procwatch.Spec{Argv: []string{"server", "--port", "0"}})
//	…
//	err = p.Ready(ctx)           // nil, *ExitError, *ReadyError or the ctx's cause
//	<-p.Exiting()                // the leader is dead
//	exit, err := p.Stop(ctx, "") // TERM, Grace, KILL; the same Exit for every caller
//
// The leader is the process that was started; the tree is the leader and what descends from it.
// How much of the tree a level can hold is said at [Containment]. A program that wants more
// than [Group] calls [Main] first in its main function (and in TestMain).
//
// # Concurrency
//
// Every method of a [Proc] may be called from any goroutine at any time, before and after the end.
// There is exactly one [Exit] for a Proc. Exiting closes first, then Done, at most
// Spec.DrainTimeout + 1 s later; neither waits for a pipe that somebody else holds, for the sink or
// for the prober. After Done no goroutine, descriptor or process of ours is left, except a call of
// Sink, Prober or Liveness.Probe that does not return.
//
// # Ownership
//
// The bytes of a [Line] and the slices of an Exit are shared by all who get them: read only. A
// successful Start owns Spec.TempDir and removes it at the end. Nothing global to the process is
// changed: no signal handler, no wait for any child, no subreaper flag. No signal goes to a process
// by number once that number may belong to somebody else.
//
// # Cancellation
//
// The ctx of Start bounds starting only, that of Ready bounds waiting only, and when that of Stop
// ends the grace is over. A child's life ends by Stop, by the child, or by our own death.
//
// # Errors
//
// [*StartError]: there is no child. [*ExitError]: it ended. [*ReadyError]: it did not become ready
// in time and is being stopped. [ErrUnkillable]: it outlived SIGKILL.
package procwatch
