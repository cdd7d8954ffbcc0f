// Package meter makes a stranger's WebAssembly module safe to compile and possible to stop: [Check]
// says what a module is and refuses what would hurt before anything is compiled, [Rewrite] gives it
// fuel, a call depth and bounded tables, and [Bake] turns a warmed instance's state into a module.
//
// It is bytes → bytes and knows no engine. Modules are core 2.0
// (https://www.w3.org/TR/wasm-core-2/): no threads, tail calls, exceptions or second memories.
//
// # Fuel
//
// One unit is one executed instruction; block, loop, else, end and nop are free. ref.func takes 16.
// Operations on a range take 17 and their length: a unit for 8 bytes of
// memory.fill, copy, init and of what memory.grow got, a unit an entry of table.fill, copy, init and
// grow. What host functions do is the host's to charge: it may lower the fuel global.
//
// The count is exact for every call that returns. It runs ahead by at most one pass through a
// function's code, since code is charged when it is certain to run, not when it runs: that is what a
// trap, a host function and the refill import may see. A trap may also leave out what has run since fuel
// was last looked at, at most a quantum: functions that charge more often than they call count in a
// local. The same module with the same input burns the same fuel, on any engine.
//
// Fuel is looked at when a function is entered, at the end of one that calls, at each turn of a loop,
// every 8,192 instructions of code without one, and every 256 KiB of memory.fill, copy and init.
// Functions under 64 instructions that call are looked at when they are entered only, and what comes
// within 32 instructions after a call may be charged before it: that much for every frame that depth
// allows, 1 M instructions by default, is what hostile code can run unseen on the way back.
//
// # Depth
//
// A function that calls another holds 1 + locals / 16 + instructions / 1024 units of depth while it
// runs, parameters and 32 instructions a call included; functions that call nothing hold none. A
// trap leaves what was held: the host sets both globals before every call.
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
