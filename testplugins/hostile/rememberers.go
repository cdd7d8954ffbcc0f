package hostile

import "github.com/wevalr/wevalr/testplugins/wasm"

// rememberers try to know, in a call, of calls before: the second must look like the first.
func rememberers() []Module {
	memory := &guest{}
	at, _ := memory.Put("0000")
	memory.Body = cat(i32c(at), load(at), i32c(1), op(0x6a, 0x36, 2, 0), digit(memory, cat(load(at), i32c('0'), op(0x6b))))

	alike := func(name string, g *guest, n []byte) Module {
		g.Body = digit(g, n)
		return harmless(name, "", g)
	}
	get, set := op(0x23, 0), op(0x24, 0)
	ints := &guest{Globals: [][]byte{global(i32, i32c(0))}}
	longs := &guest{Globals: [][]byte{global(i64, i64c(-1))}}
	floats := &guest{Globals: [][]byte{global(f32, op(0x43, 0, 0, 0, 0))}}
	doubles := &guest{Globals: [][]byte{global(f64, op(0x44, 0, 0, 0, 0, 0, 0, 0, 0))}}
	references := &guest{Globals: [][]byte{global(0x70, op(0xd0, 0x70))}, Elements: [][]byte{cat(op(3, 0), wasm.Vec([]byte{0}))}}
	references.Body = cat(get, op(0xd1), expect(1), op(0xd2, 0), set, good(references))

	tables := &guest{Tables: [][]byte{{0x70, 1, 1, 1}}, Elements: [][]byte{cat(op(3, 0), wasm.Vec([]byte{0}))}}
	tables.Body = cat(i32c(0), op(0x25, 0, 0xd1), expect(1), i32c(0), op(0xd2, 0, 0x26, 0), good(tables))
	segments := &guest{Passive: []byte("once")}
	segments.Body = cat(i32c(roomAt), i32c(0), i32c(4), op(0xfc, 8, 1, 0), op(0xfc, 9, 1), good(segments))

	closes := &guest{Imports: []imported{wasi("fd_close", "i")}}
	closes.Body = cat(call(0, 0), expect(0), call(0, 1), expect(0), call(0, 2), expect(0), call(0, 2), expect(8), good(closes))
	flags := &guest{Imports: []imported{wasi("fd_fdstat_set_flags", "ii"), wasi("fd_fdstat_get", "ii")}}
	flags.Body = cat(call(1, 1, roomAt), expect(0), load(roomAt), expect(2), call(0, 1, 1), expect(0),
		call(1, 1, roomAt), expect(0), load(roomAt), expect(2|1<<16), good(flags))

	// A file that init opened is where init left it.
	reads := &guest{
		Manifest: scorerManifest + folderManifest,
		Imports:  []imported{pathOpen(), wasi("fd_read", "iiii"), wasi("fd_close", "i")},
	}
	in, n := reads.Put("in")
	one := cat(store(bufAt, roomAt+8), store(bufAt+4, 1), call(1, 4, bufAt, 1, roomAt), expect(0), i32c(roomAt+8), op(0x2d, 0, 0))
	reads.Init = cat(open(in, n), expect(0), one, expect('i'), reads.Answer(`{"ok":{}}`))
	reads.Body = cat(one, expect('n'), open(in, n), expect(0), load(roomAt), expect(5), call(2, 4), expect(0), good(reads))

	// A granted folder, closed and opened again under its number, is none that the host opened.
	roots := &guest{
		Manifest: scorerManifest + folderManifest, Imports: []imported{pathOpen(), wasi("fd_close", "i"), wasi("fd_prestat_get", "ii")},
	}
	dot, dotLen := roots.Put(".")
	roots.Body = cat(call(2, 3, roomAt), expect(0), open(dot, dotLen), expect(0), call(1, 3), expect(0),
		call(0, 4, 1, dot, dotLen, 0, int64(2), int64(0), 0, roomAt), expect(0), load(roomAt), expect(3), call(1, 4), expect(0), good(roots))

	return []Module{
		harmless("a counter in memory", "", memory),
		alike("a counter in an i32 global", ints, cat(get, i32c(1), op(0x6a), set, get)),
		alike("a counter in an i64 global", longs, cat(get, i64c(2), op(0x7c), set, get, op(0xa7))),
		alike("a counter in an f32 global", floats, cat(get, op(0x43, 0, 0, 0x80, 0x3f, 0x92), set, get, op(0xa8))),
		alike("a counter in an f64 global", doubles, cat(get, op(0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0xa0), set, get, op(0xaa))),
		alike("a counter in the memory's size", &guest{}, cat(i32c(1), op(0x40, 0, 0x1a, 0x3f, 0), i32c(4), op(0x6b))),
		harmless("a reference in a global", "", references),
		harmless("a function in a table", "", tables),
		harmless("a dropped segment", "", segments),
		harmless("closed descriptors", "", closes),
		harmless("flags of a descriptor", "", flags),
		folder(harmless("the place in an open file", "", reads)),
		folder(harmless("a granted folder's number", "", roots)),
	}
}

// digit answers with the i32 that code leaves, which must be 1, as a score.
func digit(g *guest, code []byte) []byte {
	text := score("0")
	ptr, n := g.Put(text)
	at := ptr + n - int32(len("0}]}}"))
	return cat(i32c(at), code, i32c('0'), op(0x6a, 0x3a, 0, 0), i32c(at), op(0x2d, 0, 0), expect('1'), i64c(int64(ptr)<<32|int64(n)))
}

// pathOpen is import 0 of modules that read files.
func pathOpen() imported { return wasi("path_open", "iiiiiIIii") }

// open opens a path below the granted folder for reading; the descriptor comes to roomAt.
func open(ptr, n int32) []byte { return call(0, 3, 1, ptr, n, 0, int64(2), int64(0), 0, roomAt) }

func folder(m Module) Module {
	m.Folder = true
	return m
}
