package hostile

import (
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/wasm"
)

// liars are not what they say, or reach for what is not theirs.
func liars() []Module {
	with := func(im ...imported) []byte { return (&guest{Imports: im}).Bytes() }

	initialize := &guest{Imports: []imported{env("log_enabled", "i")}, Start: cat(call(0, 1), drop())}
	fail := &guest{Imports: []imported{env("fail", "ii")}}
	ptr, n := fail.Put("boom \x1b[31mred")
	fail.Body = cat(call(0, ptr, n), drop(), unreachable())
	pointer := &guest{Imports: []imported{env("log", "iii")}}
	pointer.Body = cat(call(0, 1, -1, 100), drop(), unreachable())
	procExit := wasi("proc_exit", "i")
	procExit.Results = ""
	exit := &guest{Imports: []imported{procExit}, Body: cat(call(0, 0), unreachable())}
	exitAtStart := &guest{Imports: []imported{procExit}, Start: call(0, 0)}
	raise := &guest{Imports: []imported{wasi("proc_raise", "i")}}
	raise.Body = cat(call(0, 9), expect(52), good(raise))

	index := func(instr ...byte) []byte { return (&guest{Funcs: []function{{Body: instr}}}).Bytes() }
	imports := func(module, name string, desc ...byte) []byte {
		return (&wasm.Module{Imports: [][]byte{cat(wasm.Name(module), wasm.Name(name), desc)}}).Bytes()
	}
	twice := (&guest{After: wasm.Custom(abi.SectionManifest, []byte(wasm.ManifestHead))}).Bytes()

	return []Module{
		refused("no wasm", "parse", "not a WebAssembly module", []byte("#!/bin/sh\nrm -rf /\n")),
		refused("half a module", "parse", "", (&guest{}).Bytes()[:100]),
		refused("no marker", "abi", "not a wevalr plugin", (&guest{Marker: "-"}).Bytes()),
		refused("a newer minor", "abi", "needs ABI 1.9", (&guest{Marker: "wevalr_abi_1_9"}).Bytes()),
		refused("another major", "abi", "needs ABI 2.0", (&guest{Marker: "wevalr_abi_2_0"}).Bytes()),
		refused("another major by its imports", "abi", "needs ABI 2", with(imported{Module: "wevalr_v2", Name: "log", Params: "iii", Results: "i"})),
		refused("a wrong export", "exports", "want (i32, i32) -> (i64)", (&guest{WrongCall: true}).Bytes()),
		refused("no manifest", "manifest", "no custom section", (&guest{Manifest: "-"}).Bytes()),
		refused("two manifests", "parse", "given twice", twice),
		refused("a start section", "start section", "_initialize", (&guest{StartSection: true}).Bytes()),
		refused("an import that is not declared", "imports", "needs the capability env", with(env("env_start", "ii"))),
		refused("an unknown import", "imports", "not in ABI", with(env("exec", "ii"))),
		refused("an import with a name of a megabyte", "imports", "wevalr_v1.nnn", with(env(string(repeat(1<<20, []byte("n"))), "ii"))),
		refused("an unknown module", "imports", "is unknown", with(imported{Module: "env", Name: "system", Params: "i", Results: "i"})),
		refused("an unknown WASI function", "imports", "is unknown", with(wasi("sock_open", "ii"))),
		refused("a WASI function of another type", "imports", "want (i32, i32) -> (i32)", with(wasi("random_get", "I"))),
		refused("the refill import", "imports", "is unknown", with(imported{Module: "wevalr:meter", Name: "refill", Params: "i", Results: "I"})),
		refused("the fuel global, imported", "imports", "global", imports("wevalr:meter", "fuel", wasm.KindGlobal, i64, 1)),
		refused("a memory of the host's", "imports", "memory", imports("env", "memory", wasm.KindMemory, 0, 1)),
		refused("the fuel global, exported", "exports", "wevalr:fuel", (&guest{
			Globals: [][]byte{global(i64, i64c(0))}, Exports: [][]byte{wasm.Export("wevalr:fuel", wasm.KindGlobal, 0)},
		}).Bytes()),
		refused("the fuel global by its index", "parse", "global", index(0x42, 0, 0x24, 0)),
		refused("the refill import by its index", "parse", "function", index(0x41, 0, 0x10, 4, 0x1a)),
		refused("code that is not valid", "compile", "", index(0x41, 0, 0x42, 0, 0x6a, 0x1a)),
		stillborn("a host call from _initialize", "trap", "no call is active", initialize),
		stillborn("proc_exit from _initialize", "exit", "proc_exit(0)", exitAtStart),
		fails("proc_exit(0) in a call", "exit", "proc_exit(0)", exit),
		harmless("proc_raise", "", raise),
		fails("a trap", "trap", "unreachable", &guest{Body: unreachable()}),
		fails("a panic with escape sequences", "trap", "boom \ufffd[31mred", fail),
		fails("a pointer outside of the memory", "trap", "outside of the memory", pointer),
	}
}
