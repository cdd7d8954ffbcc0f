package plugin

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
)

// guest assembles a module by hand: what no toolchain would make can be made here.
type guest struct {
	manifest string // TOML after the head; encoding is json
	marker   string // "" = abi.Marker, "-" = none
	imports  []guestImport
	body     []byte // of wevalr_call for ops other than init; its result an i64
	initBody []byte // for init; nil = {"ok":{}}
	start    []byte // body of _initialize; nil = none
	buf      []byte // body of wevalr_buf; nil = a fixed place
	callType byte   // type of wevalr_call; 0 = the right one
	min, max uint64 // memory pages; 0 = 4 and 1024

	startSection, noMemory, noManifest bool

	data []byte // placed at dataAt
}

type guestImport struct {
	module, name string
	typ          byte
}

// Numbers of the format.
const (
	kindFunc      = 0
	kindMemory    = 2
	sectionImport = 2
	sectionMemory = 5
	sectionExport = 7
	sectionStart  = 8
)

const (
	dataAt = 1024
	bufAt  = 65536
)

// Type indices of every guest: typeI32 + n is (i32 × n) → i32.
const (
	typeVoid = 0 // () → ()
	typeCall = 1 // (i32, i32) → i64
	typeExit = 2 // (i32) → ()
	typeI32  = 3
)

const manifestHead = `manifest = 1
name = "guest"
version = "0.1.0"
encoding = "json"
`

const scorerManifest = `provides = ["scorer/v1"]
[[scorer]]
name = "correct"
range = [0, 1]
[[scorer]]
name = "any"
`

const driverManifest = `provides = ["rollout/v1", "task/v1"]
[capabilities]
env = { methods = ["run"], sampling = ["temperature"], optional = true }
`

func env(name string, params byte) guestImport {
	return guestImport{abi.Module, name, typeI32 + params}
}

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

func (g *guest) bytes() []byte {
	if g.initBody == nil {
		g.initBody = g.answer(`{"ok":{}}`)
	}
	if g.body == nil {
		g.body = g.answer(`{"ok":{}}`)
	}
	if g.buf == nil {
		g.buf = i32c(bufAt)
	}
	if g.min == 0 {
		g.min, g.max = 4, 1024
	}
	types := vec(functype(nil, nil), functype([]byte{0x7f, 0x7f}, []byte{0x7e}), functype([]byte{0x7f}, nil),
		functype(nil, []byte{0x7f}), functype([]byte{0x7f}, []byte{0x7f}), functype([]byte{0x7f, 0x7f}, []byte{0x7f}),
		functype([]byte{0x7f, 0x7f, 0x7f}, []byte{0x7f}), functype([]byte{0x7f, 0x7f, 0x7f, 0x7f}, []byte{0x7f}))
	var imports [][]byte
	for _, im := range g.imports {
		imports = append(imports, cat(name(im.module), name(im.name), []byte{kindFunc, im.typ}))
	}
	callType := byte(typeCall)
	if g.callType != 0 {
		callType = g.callType
	}
	k := byte(len(g.imports))
	funcs := [][]byte{{typeVoid}, {typeI32 + 1}, {callType}}
	call := cat(op(0x20, 0), i32c(1), op(0x46), op(0x04, 0x7e), g.initBody, op(0x05), g.body, op(0x0b))
	if callType != typeCall {
		call = i32c(0)
	}
	code := [][]byte{body(nil), body(g.buf), body(call)}
	exports := [][]byte{cat(name("wevalr_buf"), []byte{kindFunc, k + 1}), cat(name("wevalr_call"), []byte{kindFunc, k + 2})}
	switch g.marker {
	case "-":
	case "":
		exports = append(exports, cat(name(abi.Marker), []byte{kindFunc, k}))
	default:
		exports = append(exports, cat(name(g.marker), []byte{kindFunc, k}))
	}
	if g.start != nil {
		funcs, code = append(funcs, []byte{typeVoid}), append(code, body(g.start))
		exports = append(exports, cat(name("_initialize"), []byte{kindFunc, k + 3}))
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = append(out, section(1, types)...)
	out = append(out, section(sectionImport, vec(imports...))...)
	out = append(out, section(3, vec(funcs...))...)
	if !g.noMemory {
		out = append(out, section(sectionMemory, vec(cat([]byte{1}, uleb(g.min), uleb(g.max))))...)
		exports = append(exports, cat(name("memory"), []byte{kindMemory, 0}))
	}
	out = append(out, section(sectionExport, vec(exports...))...)
	if g.startSection {
		out = append(out, section(sectionStart, []byte{k})...)
	}
	out = append(out, section(10, vec(code...))...)
	if !g.noMemory {
		out = append(out, section(11, vec(cat([]byte{0}, i32c(dataAt), op(0x0b), uleb(uint64(len(g.data))), g.data)))...)
	}
	if !g.noManifest {
		out = appendSection(out, abi.SectionManifest, []byte(manifestHead+g.manifest))
	}
	return out
}

// The instructions that the tests use.

func op(b ...byte) []byte { return b }

func i32c(v int32) []byte { return append([]byte{0x41}, sleb(int64(v))...) }
func i64c(v int64) []byte { return append([]byte{0x42}, sleb(v)...) }

// callImport calls import i with constant arguments; the result is on the stack.
func callImport(i byte, args ...int32) []byte {
	var b []byte
	for _, a := range args {
		b = append(b, i32c(a)...)
	}
	return append(b, 0x10, i)
}

// expect traps unless the i32 on the stack is v.
func expect(v int32) []byte { return cat(i32c(v), op(0x47, 0x04, 0x40, 0x00, 0x0b)) }

func spin() []byte        { return op(0x03, 0x40, 0x0c, 0x00, 0x0b, 0x00) }
func unreachable() []byte { return op(0x00) }
func drop() []byte        { return op(0x1a) }

func cat(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

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

func vec(items ...[]byte) []byte { return append(uleb(uint64(len(items))), cat(items...)...) }
func name(s string) []byte       { return append(uleb(uint64(len(s))), s...) }

func section(id byte, b []byte) []byte { return cat([]byte{id}, uleb(uint64(len(b))), b) }

func body(code []byte) []byte {
	b := cat([]byte{0}, code, op(0x0b))
	return append(uleb(uint64(len(b))), b...)
}

func functype(params, results []byte) []byte {
	return cat([]byte{0x60}, uleb(uint64(len(params))), params, uleb(uint64(len(results))), results)
}

// scoring is a scorer guest that answers every score with text.
func scoring(text string) *guest {
	g := &guest{manifest: scorerManifest}
	g.body = g.answer(text)
	return g
}

func score(value string) string {
	return fmt.Sprintf(`{"ok":{"scores":[{"value":%s}]}}`, value)
}

func long(n int) string { return strings.Repeat("x", n) }
