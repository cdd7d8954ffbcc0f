// Package plugin turns a .wasm file, or a folder with a plugin's source, into a checked, granted,
// pooled [Plugin] with typed calls. It is the only package that knows the WebAssembly engine.
//
// The way of a module: read → sha256 → preflight on the bytes (meter.Check, then what it may import
// and must export) → manifest and assets from custom sections → grants and options → metered →
// compiled → one instance made eagerly, so that a plugin that cannot start says so before a run
// begins → the image of what init left.
//
// Every scoring call, enumeration and rollout starts from that image: memory, globals and open
// descriptors are put back before it, clock and randomness begin anew. So equal requests give equal
// bytes and burn equal fuel, whatever came before. What an image cannot hold (tables and segments
// that code changes) makes a new instance of every call.
//
// # Concurrency
//
// Engine and Plugin are safe for concurrent use. An instance serves one call from start to end,
// also while that call is parked in env_await; the host never re-enters a guest.
//
// # Ownership
//
// Whoever calls [NewEngine] or [Engine.Load] closes what it got: plugins first, the engine last.
// Bytes and values that a call returns belong to the caller; nothing points into guest memory.
//
// # Cancellation
//
// Two cancellations are kept apart. The end of a caller's ctx cancels the env requests of a
// rollout: the guest sees a status and lives on, with a few seconds to answer. The end of a guest
// call (deadline, [Plugin.Close], the caller's ctx in a call that cannot park) kills the
// instance, and the guest sees nothing.
//
// # Errors
//
// Every error that reaches a result implements failure.Failer. What a plugin says itself is a
// [GuestError]; traps, exits, limits and bad answers are other types and are never mixed with it.
// After any of these the instance is thrown away.
package plugin
