package hostile

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
)

// guest assembles a module: what no toolchain would make can be made here.
// Layout: https://webassembly.github.io/spec/core/binary/modules.html
type guest struct {
	manifest string // TOML after the head; "-" = no manifest
	encoding string // "" = json
	marker   string // "" = abi.Marker, "-" = none
	imports  []imported
	locals   []byte // of wevalr_call, one type each, after its two parameters
	body     []byte // of wevalr_call for ops other than init; its result an i64
	init     []byte // for init; nil = {"ok":{}}
	start    []byte // body of _initialize; nil = none
	buf      []byte // body of wevalr_buf; nil = a fixed place
	callType int    // type of wevalr_call; 0 = the right one
	funcs    []function
	pages    [2]uint64 // of memory; 0 = 4 to 4,096
	tables   [][]byte
	globals  [][]byte
	exports  [][]byte
	elements [][]byte

	startSection bool
	data         []byte // placed at dataAt
	passive      []byte // a second segment, placed by memory.init; nil = none
	after        []byte // appended to the module
}

// imported is a function import. Its parameters' types come as in sig.
type imported struct{ module, name, params, results string }

type function struct {
	params, results string // a letter each: i, I, f, F
	locals, body    []byte
}

const (
	dataAt = 1024
	bufAt  = 65536
	roomAt = 3 * 65536

	wasi = "wasi_snapshot_preview1"

	i32, i64, f32, f64 = 0x7f, 0x7e, 0x7d, 0x7c

	kindFunc, kindGlobal = 0, 3
)

const head = `manifest = 1
name = "hostile"
version = "0.1.0"
`

const scorerManifest = `provides = ["scorer/v1"]
[[scorer]]
name = "any"
`

const taskManifest = `provides = ["task/v1"]
`

const driverManifest = `provides = ["rollout/v1"]
[capabilities]
env = { methods = ["run"], sampling = ["temperature"] }
`

const folderManifest = `[capabilities]
fs = { dataset = {} }
`

// put places text in the guest's memory.
func (g *guest) put(s string) (ptr, n int32) {
	ptr = int32(dataAt + len(g.data))
	g.data = append(g.data, s...)
	return ptr, int32(len(s))
}

// answer is the body that responds with text.
func (g *guest) answer(s string) []byte {
	ptr, n := g.put(s)
	return i64c(int64(ptr)<<32 | int64(n))
}

// good is the body that answers with a score.
func (g *guest) good() []byte { return g.answer(score("1")) }

// typeSection collects the types of functions.
type typeSection struct{ types [][]byte }

func (t *typeSection) of(params, results string) int {
	b := functype(params, results)
	for i := range t.types {
		if string(t.types[i]) == string(b) {
			return i
		}
	}
	t.types = append(t.types, b)
	return len(t.types) - 1
}

func (g *guest) bytes() []byte {
	if g.init == nil {
		g.init = g.answer(`{"ok":{}}`)
		if g.encoding == abi.EncodingMsgpack {
			g.init = g.answer("\x81\xa2ok\x80")
		}
	}
	if g.body == nil {
		g.body = g.good()
	}
	if g.buf == nil {
		g.buf = i32c(bufAt)
	}
	if g.pages == [2]uint64{} {
		g.pages = [2]uint64{4, 4096}
	}
	types := &typeSection{}
	void, onBuf, onCall := types.of("", ""), types.of("i", "i"), types.of("ii", "I")
	var imports [][]byte
	for _, im := range g.imports {
		imports = append(imports, cat(name(im.module), name(im.name), []byte{kindFunc}, uleb(types.of(im.params, im.results))))
	}
	call := cat(op(0x20, 0), i32c(1), op(0x46), op(0x04, i64), g.init, op(0x05), g.body, op(0x0b))
	if g.callType != 0 {
		onCall, call = types.of("i", "i"), i32c(0)
	}
	k := len(g.imports)
	funcs := [][]byte{uleb(void), uleb(onBuf), uleb(onCall)}
	code := [][]byte{body(nil, nil), body(nil, g.buf), body(g.locals, call)}
	exports := append([][]byte{
		cat(name(abi.ExportMemory), []byte{2, 0}),
		export(abi.ExportBuf, k+1), export(abi.ExportCall, k+2),
	}, g.exports...)
	if g.marker != "-" {
		exports = append(exports, export(orElse(g.marker, abi.Marker), k))
	}
	if g.start != nil {
		funcs, code = append(funcs, uleb(void)), append(code, body(nil, g.start))
		exports = append(exports, export(abi.ExportInitialize, k+3))
	}
	for _, f := range g.funcs {
		funcs, code = append(funcs, uleb(types.of(f.params, f.results))), append(code, body(f.locals, f.body))
	}
	out := append([]byte(header), section(1, vec(types.types...))...)
	out = append(out, section(2, vec(imports...))...)
	out = append(out, section(3, vec(funcs...))...)
	if g.tables != nil {
		out = append(out, section(4, vec(g.tables...))...)
	}
	out = append(out, section(5, vec(cat([]byte{1}, uleb(g.pages[0]), uleb(g.pages[1]))))...)
	if g.globals != nil {
		out = append(out, section(6, vec(g.globals...))...)
	}
	out = append(out, section(7, vec(exports...))...)
	if g.startSection {
		out = append(out, section(8, uleb(k))...)
	}
	if g.elements != nil {
		out = append(out, section(9, vec(g.elements...))...)
	}
	segments := [][]byte{cat([]byte{0}, i32c(dataAt), op(0x0b), uleb(len(g.data)), g.data)}
	if g.passive != nil {
		segments = append(segments, cat([]byte{1}, uleb(len(g.passive)), g.passive))
		out = append(out, section(12, uleb(len(segments)))...)
	}
	out = append(out, section(10, vec(code...))...)
	out = append(out, section(11, vec(segments...))...)
	if g.manifest != "-" {
		m := head + "encoding = \"" + orElse(g.encoding, abi.EncodingJSON) + "\"\n" + orElse(g.manifest, scorerManifest)
		out = append(out, custom(abi.SectionManifest, []byte(m))...)
	}
	return append(out, g.after...)
}

const header = "\x00asm\x01\x00\x00\x00"

// Instructions and parts of the format.

func op(b ...byte) []byte { return b }

func i32c(v int32) []byte { return append([]byte{0x41}, sleb(int64(v))...) }
func i64c(v int64) []byte { return append([]byte{0x42}, sleb(v)...) }

// call calls function i with constant arguments: int32 is i32, int64 i64. The result is on the stack.
func call(i byte, args ...any) []byte {
	var b []byte
	for _, a := range args {
		switch v := a.(type) {
		case int:
			b = append(b, i32c(int32(v))...)
		case int32:
			b = append(b, i32c(v)...)
		case int64:
			b = append(b, i64c(v)...)
		}
	}
	return append(b, 0x10, i)
}

// expect traps unless the i32 on the stack is v.
func expect(v int32) []byte { return cat(i32c(v), op(0x47, 0x04, 0x40, 0x00, 0x0b)) }

// load is the i32 at an address.
func load(at int32) []byte { return cat(i32c(at), op(0x28, 2, 0)) }

// store puts an i32 at an address.
func store(at, v int32) []byte { return cat(i32c(at), i32c(v), op(0x36, 2, 0)) }

// forever repeats what leaves nothing on the stack.
func forever(b []byte) []byte { return cat(op(0x03, 0x40), b, op(0x0c, 0, 0x0b, 0x00)) }

func unreachable() []byte { return op(0x00) }
func drop() []byte        { return op(0x1a) }

func cat(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func repeat(n int, b []byte) []byte { return []byte(strings.Repeat(string(b), n)) }

func uleb[N int | uint64](v N) []byte { return binary.AppendUvarint(nil, uint64(v)) }

func sleb(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func vec(items ...[]byte) []byte { return append(uleb(len(items)), cat(items...)...) }
func name(s string) []byte       { return append(uleb(len(s)), s...) }

func section(id byte, b []byte) []byte { return cat([]byte{id}, uleb(len(b)), b) }

func custom(s string, b []byte) []byte { return section(0, cat(name(s), b)) }

func export(s string, i int) []byte { return cat(name(s), []byte{kindFunc}, uleb(i)) }

func body(locals, code []byte) []byte {
	decls := make([][]byte, len(locals))
	for i, t := range locals {
		decls[i] = []byte{1, t}
	}
	b := cat(vec(decls...), code, op(0x0b))
	return append(uleb(len(b)), b...)
}

func functype(params, results string) []byte {
	list := func(s string) []byte {
		types := map[rune]byte{'i': i32, 'I': i64, 'f': f32, 'F': f64}
		b := uleb(len(s))
		for _, c := range s {
			b = append(b, types[c])
		}
		return b
	}
	return cat([]byte{0x60}, list(params), list(results))
}

// global is a mutable global of a type with its first value.
func global(typ byte, init []byte) []byte { return cat([]byte{typ, 1}, init, op(0x0b)) }

func score(value string) string {
	return fmt.Sprintf(`{"ok":{"scores":[{"name":"any","value":%s}]}}`, value)
}

// answering is a scorer that answers every call with text.
func answering(text string) *guest {
	g := &guest{}
	g.body = g.answer(text)
	return g
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
