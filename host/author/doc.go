// Package author is what the author of a plugin meets: the verbs of `wevalr plugin`.
//
// new copies a template (templates.go), build makes the module (build.go), check lists what is wrong with
// one (check.go), inspect says what it is and asks for (inspect.go), test runs cases natively and as wasm
// (test.go, builtin.go, native.go), the conformance kit runs the ABI's rules against a module in any
// language (conform.go) and hostile modules beside it (hostile.go), lock pins the plugins of an eval file (lock.go).
//
// Each verb gives a value that has JSON tags and a Text method: the two ways in which it is shown.
//
// # Concurrency
//
// The functions are safe for concurrent use on different folders.
//
// # Ownership
//
// Folders and files named by the caller are the caller's; temporary ones are removed before a function
// returns. Only test executes code of a plugin's folder (its go test); build, check, inspect and lock do not.
//
// # Cancellation
//
// The end of a ctx ends builds, tests and guest calls.
//
// # Errors
//
// A refusal of a plugin is host/plugin's own error. What a person asked for and cannot have is a
// [RequestError]. A failed case is no error but a result.
package author
