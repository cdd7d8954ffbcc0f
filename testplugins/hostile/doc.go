// Package hostile is a kit of modules that mean harm, made by hand, each with what must come of it: which
// step refuses it, or which kind of failure ends its call, and within what time.
//
// A host that takes plugins runs them all ([Modules]), a well-behaved plugin beside them: after each the
// host and the other plugin go on as if nothing had been, and nothing is left of it. The host's own tests do
// so, and `wevalr plugin test --conformance` with a plugin of anybody's.
//
// # Concurrency and ownership
//
// All functions are pure but [Folder], which writes where it is told. What they return is the caller's.
package hostile

import (
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Module is one attempt.
type Module struct {
	Part string // of the kit: a word
	Name string // of the clause, in words
	Wasm []byte
	// Step is the step of loading that refuses the module; "" = it loads.
	Step string
	// Kind is the kind of the plugin's failure: of loading where Loads is false, else of every call.
	// "" = calls go well, and are all alike.
	Kind  string
	Loads bool
	// Says is part of the error's text, or of the answer's scores as JSON.
	Says string
	// Op is what is called: abi.OpScore, abi.OpTasks, or abi.OpRollout for modules that drive an
	// env-server, which are granted it.
	Op abi.Op
	// Folder says that the module reads the folder granted as fs.dataset: one made by [Folder], with a
	// file "in", and the symbolic links "absolute", "relative" and "folder", which lead outside.
	Folder bool
	// Within bounds loading, and each call, on a slow machine. A call has Fuel.
	Within time.Duration
}

// Fuel is how many instructions a call of a module of the kit may run: so little that all of them
// together end soon.
const Fuel = 20_000_000

const within = 5 * time.Second

// Modules are all of them.
func Modules() []Module {
	var all []Module
	for _, part := range []struct {
		name    string
		modules []Module
	}{
		{"runaways", runaways()},
		{"bombs", bombs()},
		{"liars", liars()},
		{"answers", answers()},
		{"escapes", escapes()},
		{"rememberers", rememberers()},
		{"drivers", drivers()},
		{"worldly", worldly()},
	} {
		for i := range part.modules {
			part.modules[i].Part = part.name
		}
		all = append(all, part.modules...)
	}
	for i := range all {
		m := &all[i]
		if m.Op == 0 {
			m.Op = abi.OpScore
		}
		if m.Within == 0 {
			m.Within = within
		}
	}
	return all
}

// refused is a module that does not get as far as the compiler.
func refused(name, step, says string, wasm []byte) Module {
	return Module{Name: name, Step: step, Kind: "abi", Says: says, Wasm: wasm}
}

// fails is a module that loads, and whose calls fail.
func fails(name, kind, says string, g *guest) Module {
	return Module{Name: name, Kind: kind, Loads: true, Says: says, Wasm: g.Bytes()}
}

// stillborn is a module that passes the checks, and whose start fails.
func stillborn(name, kind, says string, g *guest) Module {
	return Module{Name: name, Kind: kind, Says: says, Wasm: g.Bytes()}
}

// harmless is a module whose attempt comes to nothing: its calls go well.
func harmless(name, says string, g *guest) Module {
	return Module{Name: name, Loads: true, Says: says, Wasm: g.Bytes()}
}

// noManifest is a module whose manifest cannot be read.
func noManifest(name, says string, wasm []byte) Module {
	return Module{Name: name, Kind: "abi", Says: says, Wasm: wasm}
}
