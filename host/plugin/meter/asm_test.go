package meter_test

import (
	"encoding/binary"
	"slices"
)

// wasm builds a module by hand.
type wasm struct {
	types, imports, tables, mems, globals, exports, elems, data [][]byte
	start                                                       []byte
	count                                                       bool // a data count section
	funcs, bodies                                               [][]byte
}

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

// u is an unsigned LEB128 number.
func u(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// i is a signed one behind its opcode.
func i32(v int64) []byte { return append([]byte{0x41}, signed(v)...) }
func i64(v int64) []byte { return append([]byte{0x42}, signed(v)...) }

func signed(v int64) []byte {
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

func str(s string) []byte { return append(u(len(s)), s...) }

func vec(items [][]byte) []byte { return cat(u(len(items)), cat(items...)) }

func op(b ...byte) []byte { return b }

// fn adds an exported function; locals are of type i64, the body lacks its end.
func (w *wasm) fn(name string, params, results []byte, locals int, code ...[]byte) *wasm {
	t := cat(op(0x60), u(len(params)), params, u(len(results)), results)
	w.types = append(w.types, t)
	w.funcs = append(w.funcs, u(len(w.types)-1))
	decl := op(0)
	if locals > 0 {
		decl = cat(op(1), u(locals), op(0x7e))
	}
	body := cat(decl, cat(code...), op(0x0b))
	w.bodies = append(w.bodies, cat(u(len(body)), body))
	w.exports = append(w.exports, cat(str(name), op(0), u(len(w.imports)+len(w.funcs)-1)))
	return w
}

// memory adds an own memory.
func (w *wasm) memory(pages int) *wasm {
	w.mems = append(w.mems, cat(op(0), u(pages)))
	return w
}

func (w *wasm) table(min int) *wasm {
	w.tables = append(w.tables, cat(op(0x70, 0), u(min)))
	return w
}

func sec(id byte, content []byte) []byte { return cat(op(id), u(len(content)), content) }

func (w *wasm) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id    byte
		items [][]byte
	}{
		{1, w.types},
		{2, w.imports},
		{3, w.funcs},
		{4, w.tables},
		{5, w.mems},
		{6, w.globals},
		{7, w.exports},
		{8, nil},
		{9, w.elems},
		{10, w.bodies},
		{11, w.data},
	} {
		if s.id == 10 && w.count {
			out = append(out, sec(12, u(len(w.data)))...)
		}
		switch {
		case s.id == 8 && w.start != nil:
			out = append(out, sec(8, w.start)...)
		case len(s.items) > 0:
			out = append(out, sec(s.id, vec(s.items))...)
		}
	}
	return out
}
