package hostile

import "github.com/wevalr/wevalr/plugins/abi"

// liars are not what they say, or reach for what is not theirs.
func liars() []Module {
	with := func(im ...imported) []byte { return (&guest{imports: im}).bytes() }
	env := func(n, params string) imported { return imported{abi.Module, n, params, "i"} }

	initialize := &guest{imports: []imported{env("log_enabled", "i")}, start: cat(call(0, 1), drop())}
	fail := &guest{imports: []imported{env("fail", "ii")}}
	ptr, n := fail.put("boom \x1b[31mred")
	fail.body = cat(call(0, ptr, n), drop(), unreachable())
	pointer := &guest{imports: []imported{env("log", "iii")}}
	pointer.body = cat(call(0, 1, -1, 100), drop(), unreachable())
	exit := &guest{imports: []imported{{wasi, "proc_exit", "i", ""}}, body: cat(call(0, 0), unreachable())}
	exitAtStart := &guest{imports: []imported{{wasi, "proc_exit", "i", ""}}, start: call(0, 0)}
	raise := &guest{imports: []imported{{wasi, "proc_raise", "i", "i"}}}
	raise.body = cat(call(0, 9), expect(52), raise.good())
	abort := &guest{imports: []imported{env("env_start", "ii")}, manifest: scorerManifest}

	index := func(instr ...byte) []byte { return (&guest{funcs: []function{{body: instr}}}).bytes() }
	fuel := []byte("wevalr:fuel")
	globalImport := append([]byte(header), section(2, vec(cat(name("wevalr:meter"), name("fuel"), []byte{kindGlobal, i64, 1})))...)
	memoryImport := append([]byte(header), section(2, vec(cat(name("env"), name("memory"), []byte{2, 0, 1})))...)
	twice := (&guest{after: custom(abi.SectionManifest, []byte(head))}).bytes()

	return []Module{
		refused("no wasm", "parse", "not a WebAssembly module", []byte("#!/bin/sh\nrm -rf /\n")),
		refused("half a module", "parse", "", (&guest{}).bytes()[:100]),
		refused("no marker", "abi", "not a wevalr plugin", (&guest{marker: "-"}).bytes()),
		refused("a newer minor", "abi", "needs ABI 1.9", (&guest{marker: "wevalr_abi_1_9"}).bytes()),
		refused("another major", "abi", "needs ABI 2.0", (&guest{marker: "wevalr_abi_2_0"}).bytes()),
		refused("another major by its imports", "abi", "needs ABI 2", with(imported{"wevalr_v2", "log", "iii", "i"})),
		refused("a wrong export", "exports", "want (i32, i32) -> (i64)", (&guest{callType: 1}).bytes()),
		refused("no manifest", "manifest", "no custom section", (&guest{manifest: "-"}).bytes()),
		refused("two manifests", "parse", "given twice", twice),
		refused("a start section", "start section", "_initialize", (&guest{startSection: true}).bytes()),
		refused("an import that is not declared", "imports", "needs the capability env", abort.bytes()),
		refused("an unknown import", "imports", "not in ABI", with(env("exec", "ii"))),
		refused("an unknown module", "imports", "is unknown", with(imported{"env", "system", "i", "i"})),
		refused("an unknown WASI function", "imports", "is unknown", with(imported{wasi, "sock_open", "ii", "i"})),
		refused("a WASI function of another type", "imports", "want (i32, i32) -> (i32)", with(imported{wasi, "random_get", "I", "i"})),
		refused("the refill import", "imports", "is unknown", with(imported{"wevalr:meter", "refill", "i", "I"})),
		refused("the fuel global, imported", "imports", "global", globalImport),
		refused("a memory of the host's", "imports", "memory", memoryImport),
		refused("the fuel global, exported", "exports", "wevalr:fuel", (&guest{
			globals: [][]byte{global(i64, i64c(0))}, exports: [][]byte{cat(name(string(fuel)), []byte{kindGlobal, 0})},
		}).bytes()),
		refused("the fuel global by its index", "parse", "global", index(0x42, 0, 0x24, 0)),
		refused("the refill import by its index", "parse", "function", index(0x41, 0, 0x10, 4, 0x1a)),
		refused("code that is not valid", "compile", "", index(0x41, 0, 0x42, 0, 0x6a, 0x1a)),
		stillborn("a host call from _initialize", "trap", "no call is active", initialize),
		stillborn("proc_exit from _initialize", "exit", "proc_exit(0)", exitAtStart),
		fails("proc_exit(0) in a call", "exit", "proc_exit(0)", exit),
		harmless("proc_raise", "", raise),
		fails("a trap", "trap", "unreachable", &guest{body: unreachable()}),
		fails("a panic with escape sequences", "trap", "boom \ufffd[31mred", fail),
		fails("a pointer outside of the memory", "trap", "outside of the memory", pointer),
	}
}
