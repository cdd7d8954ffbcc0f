package meter_test

import (
	"slices"

	format "github.com/wevalr/wevalr/testplugins/wasm"
)

// wasm builds a module by hand.
type wasm struct{ format.Module }

// fn adds an exported function; locals are of type i64, the body lacks its end.
func (w *wasm) fn(name string, params, results []byte, locals int, code ...[]byte) *wasm {
	w.Types = append(w.Types, cat(op(0x60), u(len(params)), params, u(len(results)), results))
	w.Funcs = append(w.Funcs, u(len(w.Types)-1))
	decl := op(0)
	if locals > 0 {
		decl = cat(op(1), u(locals), op(0x7e))
	}
	body := cat(decl, cat(code...), op(0x0b))
	w.Code = append(w.Code, cat(u(len(body)), body))
	w.Exports = append(w.Exports, format.Export(name, format.KindFunc, len(w.Imports)+len(w.Funcs)-1))
	return w
}

// memory adds an own memory.
func (w *wasm) memory(pages int) *wasm {
	w.Memories = append(w.Memories, cat(op(0), u(pages)))
	return w
}

func (w *wasm) table(min int) *wasm {
	w.Tables = append(w.Tables, cat(op(0x70, 0), u(min)))
	return w
}

func op(b ...byte) []byte        { return b }
func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }
func i32(v int32) []byte         { return format.I32Const(v) }
func i64(v int64) []byte         { return format.I64Const(v) }
func u(n int) []byte             { return format.ULEB(n) }
func str(s string) []byte        { return format.Name(s) }
