// Package wasm assembles WebAssembly modules by hand, for tests: it makes what no toolchain would.
//
// A [Module] is made of sections, and a [Guest] is a module that is a plugin; functions encode the parts, as
// https://webassembly.github.io/spec/core/binary/modules.html says. Nothing is checked: what is wrong with a
// module may be the point of its test.
//
// # Concurrency and ownership
//
// Functions are pure, and what they return is the caller's. A Module or Guest serves one goroutine at a time.
package wasm

import (
	"encoding/binary"
	"slices"
)

// The types of values.
const (
	I32 = 0x7f
	I64 = 0x7e
	F32 = 0x7d
	F64 = 0x7c
)

// The kinds of imports and exports.
const (
	KindFunc   = 0
	KindMemory = 2
	KindGlobal = 3
)

// Module has the encoded items of each section. Sections without any are left out.
type Module struct {
	Types, Imports, Funcs, Tables, Memories, Globals, Exports, Elements, Code, Data [][]byte

	Start     []byte // index of the start function; nil = none
	DataCount bool   // a data count section
}

// Bytes is the module.
func (m *Module) Bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	add := func(id byte, items [][]byte) {
		if len(items) > 0 {
			out = append(out, Section(id, Vec(items...))...)
		}
	}
	add(1, m.Types)
	add(2, m.Imports)
	add(3, m.Funcs)
	add(4, m.Tables)
	add(5, m.Memories)
	add(6, m.Globals)
	add(7, m.Exports)
	if m.Start != nil {
		out = append(out, Section(8, m.Start)...)
	}
	add(9, m.Elements)
	if m.DataCount {
		out = append(out, Section(12, ULEB(len(m.Data)))...)
	}
	add(10, m.Code)
	add(11, m.Data)
	return out
}

// Section is a section of any content.
func Section(id byte, content []byte) []byte { return append([]byte{id}, sized(content)...) }

// Custom is a custom section.
func Custom(name string, content []byte) []byte { return Section(0, append(Name(name), content...)) }

// Vec is a vector: its length, then its items.
func Vec(items ...[]byte) []byte { return append(ULEB(len(items)), slices.Concat(items...)...) }

// Name is a name.
func Name(s string) []byte { return sized([]byte(s)) }

// Export is an entry of the export section.
func Export(name string, kind byte, index int) []byte {
	return slices.Concat(Name(name), []byte{kind}, ULEB(index))
}

// FuncType is an entry of the type section. Each parameter and result is a letter: i and I for i32 and i64,
// f and F for f32 and f64.
func FuncType(params, results string) []byte {
	list := func(s string) []byte {
		types := map[rune]byte{'i': I32, 'I': I64, 'f': F32, 'F': F64}
		b := ULEB(len(s))
		for _, c := range s {
			b = append(b, types[c])
		}
		return b
	}
	return slices.Concat([]byte{0x60}, list(params), list(results))
}

// Body is an entry of the code section: a function's locals, one type each, and its code, to which it adds the
// end.
func Body(locals, code []byte) []byte {
	decls := make([][]byte, len(locals))
	for i, t := range locals {
		decls[i] = []byte{1, t}
	}
	return sized(slices.Concat(Vec(decls...), code, []byte{0x0b}))
}

// I32Const is the instruction i32.const.
func I32Const(v int32) []byte { return append([]byte{0x41}, sleb(int64(v))...) }

// I64Const is the instruction i64.const.
func I64Const(v int64) []byte { return append([]byte{0x42}, sleb(v)...) }

// ULEB is an unsigned number in LEB128.
func ULEB(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// sleb is a signed number in LEB128.
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

// sized is b after its length.
func sized(b []byte) []byte { return append(ULEB(len(b)), b...) }
