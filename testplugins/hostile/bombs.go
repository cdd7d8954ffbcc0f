package hostile

import (
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/wasm"
)

// bombs want more of the host than they are worth: of its memory, or of its compiler's time.
func bombs() []Module {
	funcs := func(f ...function) []byte { return (&guest{Funcs: f}).Bytes() }
	table := func(limits ...[]byte) [][]byte { return [][]byte{cat([]byte{0x70, 1}, cat(limits...))} }

	// loop: trap if memory.grow(16) == -1
	memory := &guest{Body: cat(op(0x03, 0x40), i32c(16), op(0x40, 0), i32c(-1), op(0x46, 0x04, 0x40, 0x00, 0x0b, 0x0c, 0, 0x0b, 0x00))}
	// grows until it gets no more, and answers
	greedy := &guest{Locals: []byte{i32}}
	greedy.Body = cat(op(0x03, 0x40), i32c(1), op(0x40, 0), i32c(-1), op(0x47, 0x0d, 0, 0x0b), good(greedy))
	// table.grow by 2^28, by 2^16, then as long as it goes
	tables := &guest{Tables: table(wasm.ULEB(1), wasm.ULEB(1<<32-1))}
	grow := func(n int32) []byte { return cat(op(0xd0, 0x70), i32c(n), op(0xfc, 0x0f, 0)) }
	tables.Body = cat(grow(1<<28), expect(-1), grow(65536), expect(-1), grow(65535), expect(1), grow(1), expect(-1), good(tables))

	many := func(n int, locals int) []byte {
		loops := repeat(n, op(0x03, 0x40, 0x0b))
		return funcs(function{Locals: repeat(locals, []byte{i32}), Body: loops})
	}
	labels := cat(op(0x41, 0, 0x0e), wasm.ULEB(1<<20), make([]byte, 1<<20), op(0))
	// One declaration of very many locals: {130,000,000 × i64}.
	locals := cat(wasm.ULEB(1), wasm.ULEB(130_000_000), op(i64), op(0x0b))
	raw := wasm.Module{
		Types: [][]byte{wasm.FuncType("", "")}, Funcs: [][]byte{{0}}, Memories: [][]byte{{0, 1}},
		Code: [][]byte{cat(wasm.ULEB(len(locals)), locals)},
	}

	// {"ok": {"tasks": [{"key": "a", "data": {"x": [nil, nil, …]}}]}}: more values than the longest answer of another kind can hold.
	page := &guest{Encoding: abi.EncodingMsgpack, Manifest: taskManifest, Pages: [2]int{160, 160}}
	const nils = 9 << 20
	at, size := page.Put("\x81\xa2ok\x81\xa5tasks\x91\x82\xa3key\xa1a\xa4data\x81\xa1x\xdd\x00\x90\x00\x00")
	page.Body = cat(i32c(at+size), i32c(0xc0), i32c(nils), op(0xfc, 0x0b, 0), i64c(int64(at)<<32|int64(size+nils)))
	values := fails("a page of tasks of 9 million values", "response", "values", page)
	values.Op = abi.OpTasks

	// Pages of one task whose key is the page's number in letters, and so is the next cursor.
	endless := &guest{Manifest: taskManifest, Globals: [][]byte{global(i32, i32c(0))}}
	const digits = 8
	text := `{"ok":{"tasks":[{"key":"aaaaaaaa","data":{}}],"next":"aaaaaaaa"}}`
	answer := endless.Answer(text)
	for _, from := range []int{strings.Index(text, "aa"), strings.LastIndex(text, "aa") + 2 - digits} {
		for i := range int32(digits) {
			endless.Body = cat(endless.Body, i32c(int32(dataAt+from)+i), op(0x23, 0), i32c(4*i), op(0x76), i32c(15), op(0x71), i32c('a'), op(0x6a, 0x3a, 0, 0))
		}
	}
	endless.Body = cat(endless.Body, op(0x23, 0), i32c(1), op(0x6a, 0x24, 0), answer)
	pages := fails("tasks without end", "fuel", "instructions for all pages", endless)
	pages.Op = abi.OpTasks

	// Each of 20,000 values on the stack lives through 2,000 ifs.
	lives := cat(repeat(20_000, op(0x20, 0, 0x45)), repeat(2000, op(0x20, 0, 0x04, 0x40, 0x41, 0, 0x1a, 0x0b)), repeat(20_000, drop()))
	// The engine would write the module's name before that of each function, and keep them all.
	names := &guest{Body: unreachable(), Funcs: make([]function, 1000)}
	names.After = wasm.Custom("name", wasm.Section(0, wasm.Name(string(repeat(1<<20, []byte("n"))))))

	panics := []byte{
		0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 3, 2, 0, 0x5f, 0xa, 9, 2, 4, 0, 0x10, 1, 0xb, 2, 0, 0xb,
	}
	empty := make([]function, 60_000)

	// The engine would hold gigabytes: it stores and loads each global at each call.
	globals := &guest{Funcs: []function{{}, {Body: repeat(40_000, call(3))}}}
	for range 300 {
		globals.Globals = append(globals.Globals, global(i64, i64c(0)))
	}

	return []Module{
		fails("memory bomb", "memory", "64 MiB", memory),
		harmless("all the memory there is", "", greedy),
		harmless("table bomb", "", tables),
		values,
		pages,
		refused("a table of 134,217,728", "size", "table size", (&guest{Tables: table(wasm.ULEB(134_217_728), wasm.ULEB(134_217_728))}).Bytes()),
		refused("five tables", "size", "table count", (&guest{Tables: [][]byte{
			{0x70, 0, 1}, {0x70, 0, 1}, {0x70, 0, 1}, {0x70, 0, 1}, {0x70, 0, 1},
		}}).Bytes()),
		refused("memory over the limit", "memory", "limit is 64 MiB", (&guest{Pages: [2]int{1025, 4096}}).Bytes()),
		refused("130,000,000 locals", "size", "locals", raw.Bytes()),
		refused("50,000 nested blocks", "size", "", funcs(function{Body: cat(repeat(50_000, op(0x02, 0x40)), repeat(50_000, op(0x0b)))})),
		refused("20,000 loops", "size", "blocks", many(20_000, 1)),
		refused("3,000 loops with 3,000 locals", "size", "compile cost", many(3_000, 3_000)),
		refused("20,000 values through 2,000 ifs", "size", "compile cost", funcs(function{Params: "i", Body: lives})),
		refused("40,000 calls with 300 globals", "size", "compile cost", globals.Bytes()),
		fails("a name of a megabyte", "trap", "unreachable", names),
		refused("a br_table of 1,048,576", "size", "", funcs(function{Body: labels})),
		refused("60,000 empty functions", "size", "count", funcs(empty...)),
		refused("the module that panics the compiler", "parse", "type index", panics),
		refused("a megabyte of blocks", "size", "", funcs(function{Body: repeat(1<<18, op(0x02, 0x40, 0x0b))})),
		noManifest("a manifest of nested brackets", "at most", (&guest{Manifest: "x = " + string(repeat(8<<20, []byte("[")))}).Bytes()),
		noManifest("a short manifest of nested brackets", "manifest", (&guest{Manifest: "x = " + string(repeat(60_000, []byte("[")))}).Bytes()),
	}
}
