package wasm

import (
	"cmp"
	"slices"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Guest is a plugin. Its functions have the numbers of its imports, then the marker, wevalr_buf, wevalr_call,
// _initialize where there is one, and Funcs. The zero value is a scorer that answers every call with {"ok":{}}.
type Guest struct {
	Manifest string // TOML after the head; "" = ScorerManifest, "-" = no manifest
	Encoding string // "" = json
	Marker   string // "" = abi.Marker, "-" = none
	Imports  []Import
	Locals   []byte // of wevalr_call, one type each, after its two parameters
	Body     []byte // of wevalr_call for ops other than init; its result an i64
	Init     []byte // for init
	Start    []byte // body of _initialize; nil = none
	Buf      []byte // body of wevalr_buf; nil = BufAt
	Funcs    []Func
	Pages    [2]int // of memory; 0 = 4 to 4,096

	Tables, Globals, Exports, Elements [][]byte // as in Module

	WrongCall    bool // wevalr_call gives an i32
	StartSection bool // the start function is the marker
	NoMemory     bool // and no Data

	Data    []byte // placed at DataAt
	Passive []byte // a second segment, placed by memory.init; nil = none
	After   []byte // appended to the module
}

// Import is a function import. Its type is as in [FuncType].
type Import struct{ Module, Name, Params, Results string }

// Func is a function. Its type is as in [FuncType].
type Func struct {
	Params, Results string
	Locals, Body    []byte
}

// Places in the memory of a [Guest]: of its data, of a request, and of what its code puts there itself.
const (
	DataAt = 1024
	BufAt  = 65536
	RoomAt = 3 * 65536
)

// ManifestHead is how every manifest begins; the encoding comes next.
const ManifestHead = `manifest = 1
name = "guest"
version = "0.1.0"
`

// ScorerManifest is the rest of a manifest with two scorers.
const ScorerManifest = `provides = ["scorer/v1"]
[[scorer]]
name = "correct"
range = [0, 1]
[[scorer]]
name = "any"
`

// Answering is a scorer that answers every call but init with text.
func Answering(text string) *Guest {
	g := &Guest{}
	g.Body = g.Answer(text)
	return g
}

// Put places text in the guest's memory.
func (g *Guest) Put(s string) (ptr, n int32) {
	ptr = int32(DataAt + len(g.Data))
	g.Data = append(g.Data, s...)
	return ptr, int32(len(s))
}

// Answer is the body that responds with text.
func (g *Guest) Answer(s string) []byte {
	ptr, n := g.Put(s)
	return I64Const(int64(ptr)<<32 | int64(n))
}

// Bytes is the module. Init and Body have their defaults then.
func (g *Guest) Bytes() []byte {
	enc, ok := cmp.Or(g.Encoding, abi.EncodingJSON), `{"ok":{}}`
	if enc == abi.EncodingMsgpack {
		ok = "\x81\xa2ok\x80"
	}
	if g.Init == nil {
		g.Init = g.Answer(ok)
	}
	if g.Body == nil {
		g.Body = g.Answer(ok)
	}
	buf := g.Buf
	if buf == nil {
		buf = I32Const(BufAt)
	}
	// if op == init { init } else { body }
	call := Func{"ii", "I", g.Locals, slices.Concat(
		[]byte{0x20, 0}, I32Const(1), []byte{0x46, 0x04, I64}, g.Init, []byte{0x05}, g.Body, []byte{0x0b})}
	if g.WrongCall {
		call = Func{"ii", "i", nil, I32Const(0)}
	}
	funcs := []Func{{}, {"i", "i", nil, buf}, call}

	m := Module{Tables: g.Tables, Globals: g.Globals, Elements: g.Elements, DataCount: g.Passive != nil}
	k, pages := len(g.Imports), cmp.Or(g.Pages, [2]int{4, 4096})
	if !g.NoMemory {
		m.Memories = [][]byte{slices.Concat([]byte{1}, ULEB(pages[0]), ULEB(pages[1]))}
		m.Data = [][]byte{slices.Concat([]byte{0}, I32Const(DataAt), []byte{0x0b}, sized(g.Data))}
		m.Exports = append(m.Exports, Export(abi.ExportMemory, KindMemory, 0))
	}
	if g.Passive != nil {
		m.Data = append(m.Data, append([]byte{1}, sized(g.Passive)...))
	}
	m.Exports = append(m.Exports, Export(abi.ExportBuf, KindFunc, k+1), Export(abi.ExportCall, KindFunc, k+2))
	m.Exports = append(m.Exports, g.Exports...)
	if g.Marker != "-" {
		m.Exports = append(m.Exports, Export(cmp.Or(g.Marker, abi.Marker), KindFunc, k))
	}
	if g.Start != nil {
		funcs = append(funcs, Func{Body: g.Start})
		m.Exports = append(m.Exports, Export(abi.ExportInitialize, KindFunc, k+3))
	}
	if g.StartSection {
		m.Start = ULEB(k)
	}
	for _, f := range append(funcs, g.Funcs...) {
		m.Funcs, m.Code = append(m.Funcs, m.typ(f.Params, f.Results)), append(m.Code, Body(f.Locals, f.Body))
	}
	for _, im := range g.Imports {
		m.Imports = append(m.Imports, slices.Concat(Name(im.Module), Name(im.Name), []byte{KindFunc}, m.typ(im.Params, im.Results)))
	}
	out := m.Bytes()
	if g.Manifest != "-" {
		text := ManifestHead + "encoding = \"" + enc + "\"\n" + cmp.Or(g.Manifest, ScorerManifest)
		out = append(out, Custom(abi.SectionManifest, []byte(text))...)
	}
	return append(out, g.After...)
}

// typ is the index of a type, which is added where it is new.
func (m *Module) typ(params, results string) []byte {
	t := FuncType(params, results)
	i := slices.IndexFunc(m.Types, func(b []byte) bool { return slices.Equal(b, t) })
	if i < 0 {
		i = len(m.Types)
		m.Types = append(m.Types, t)
	}
	return ULEB(i)
}

// Call calls function i with constant arguments: an int64 is an i64, an int or int32 an i32. The result is on
// the stack.
func Call(i byte, args ...any) []byte {
	var b []byte
	for _, a := range args {
		switch v := a.(type) {
		case int:
			b = append(b, I32Const(int32(v))...)
		case int32:
			b = append(b, I32Const(v)...)
		case int64:
			b = append(b, I64Const(v)...)
		}
	}
	return append(b, 0x10, i)
}

// Expect traps unless the i32 on the stack is v.
func Expect(v int32) []byte { return append(I32Const(v), 0x47, 0x04, 0x40, 0x00, 0x0b) }

// Forever repeats what leaves nothing on the stack.
func Forever(b []byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, b, []byte{0x0c, 0, 0x0b, 0x00})
}
