// Package meter makes a stranger's WebAssembly module safe to compile and possible to stop: [Check]
// says what a module is and refuses what would hurt before anything is compiled, [Rewrite] gives it
// fuel, a call depth and bounded tables, and [Bake] turns a warmed instance's state into a module.
//
// It is bytes → bytes and knows no engine. Modules are core 2.0
// (https://www.w3.org/TR/wasm-core-2/): no threads, tail calls, exceptions or second memories.
//
// # Fuel
//
// One unit is one executed instruction, charged by basic block when the block is entered: block,
// loop, else, end and nop are free, what leaves native code costs a little more ([Rewrite] has the
// list), operations on a range are charged by its length. Within a function the count is exact; a
// block that traps half-way, and the block around a call, have been charged in full before. The same
// module with the same input burns the same fuel, on any engine.
//
// # Depth
//
// A function that calls another holds 1 + (parameters + locals) / 16 units of depth while it runs;
// functions that call nothing hold none.
//
// # Concurrency and ownership
//
// All functions are pure: safe for concurrent use, inputs are never changed, results share no memory
// with them. There is nothing to cancel: the work is linear in the module's size.
//
// # Errors
//
// Every error is a [*Refusal], which says where and why, and what would help.
package meter

// Version names the way fuel is counted. Equal versions burn equal fuel.
const Version = "meter/1"

// Names that a rewritten module exports for its host. Everything that starts with [Prefix] is
// reserved: a guest that exports such a name is refused.
const (
	Prefix      = "wevalr:"
	FuelExport  = Prefix + "fuel"  // (mut i64): what is left before the next refill
	DepthExport = Prefix + "depth" // (mut i64): how much deeper calls may nest
	// globalExport and the number of a module's own global name a mutable one.
	globalExport = Prefix + "g"
)

// Reasons that the refill import is called for.
const (
	// ReasonFuel: fuel is below zero. The host returns what it grants, or ends the call by a panic.
	ReasonFuel = 0
	// ReasonDepth: calls nest too deep. Whatever the host returns, the guest traps.
	ReasonDepth = 1
)
