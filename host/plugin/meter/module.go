package meter

import (
	"bytes"
	"fmt"
)

// section is where a section's content lies in the file.
type section struct{ pos, end int }

// Section numbers.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	numSections
)

func sectionName(id byte) string {
	names := [numSections]string{
		"custom", "type", "import", "function", "table", "memory", "global", "export", "start",
		"element", "code", "data", "data count",
	}
	if int(id) < len(names) {
		return names[id]
	}
	return "unknown"
}

// sectionOrder is the order that the format wants.
func sectionOrder() []byte {
	return []byte{
		secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport, secStart,
		secElement, secDataCount, secCode, secData,
	}
}

// module is a parsed module: all indices in it are in range, all lengths add up. Whether its
// code is well typed is the engine's to say.
type module struct {
	b    []byte
	caps *Caps
	secs [numSections]section // end 0: not there
	name section              // content of the name section after its name

	types   []FuncType
	imports []Import
	exports []Export
	funcs   []uint32 // types of the functions, imported ones first
	tables  []table  // imported ones first
	mems    []limits // imported ones first
	globals []global // imported ones first
	elems   []element
	bodies  []section
	data    []segment

	nImpFuncs, nImpTables, nImpMems, nImpGlobals int

	elemEntries int // of all segments

	dataCount    uint32
	hasDataCount bool
	start        uint32
	hasStart     bool
}

type limits struct {
	min, max uint32
	hasMax   bool
}

type table struct {
	elem ValType
	limits
}

type global struct {
	typ     ValType
	mutable bool
	init    constExpr
}

// constExpr is one constant instruction and its end.
type constExpr struct {
	section
	op    byte
	index uint32 // of ref.func and global.get
	i32   int32
}

type element struct {
	flags, table uint32
	offset       constExpr
	kind         []byte // element kind or type, as it stands there
	funcs        []uint32
	exprs        []constExpr
}

type segment struct {
	flags  uint32
	offset constExpr
	bytes  []byte
}

func (m *module) ownFuncs() []uint32 { return m.funcs[m.nImpFuncs:] }

func (m *module) reader(id byte) *reader {
	return &reader{b: m.b, pos: m.secs[id].pos, end: m.secs[id].end, section: sectionName(id)}
}

// parse reads everything but the function bodies. Sections that hold more than caps allow are
// refused before anything is kept of them; nil = no caps.
func parse(b []byte, caps *Caps) (*module, *Refusal) {
	m := &module{b: b, caps: caps}
	if err := m.split(); err != nil {
		return nil, err
	}
	for _, id := range sectionOrder() {
		if m.secs[id].end == 0 {
			continue
		}
		r := m.reader(id)
		m.parseSection(id, r)
		if r.err == nil && r.pos != r.end {
			r.fail(r.pos, "section size", fmt.Sprintf("%d bytes left over", r.end-r.pos))
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	r := &reader{b: b, pos: len(b), end: len(b), section: "code"}
	if own := len(m.ownFuncs()); own != len(m.bodies) {
		r.fail(m.secs[secCode].pos, "function count", fmt.Sprintf("%d functions, %d bodies", own, len(m.bodies)))
	}
	if m.hasDataCount && int(m.dataCount) != len(m.data) {
		r.fail(m.secs[secDataCount].pos, "data count", fmt.Sprintf("%d announced, %d segments", m.dataCount, len(m.data)))
	}
	return m, r.err
}

// split finds the sections and checks their order.
func (m *module) split() *Refusal {
	r := &reader{b: m.b, end: len(m.b), section: "module"}
	if !bytes.HasPrefix(m.b, []byte("\x00asm\x01\x00\x00\x00")) {
		r.fail(0, "header", "not a WebAssembly module of version 1")
		return r.err
	}
	r.pos = 8
	order := sectionOrder()
	for r.more() {
		at := r.pos
		id := r.byte()
		body := r.bytes()
		s := section{r.pos - len(body), r.pos}
		if r.err != nil {
			break
		}
		if id == secCustom {
			c := &reader{b: m.b, pos: s.pos, end: s.end, section: "custom"}
			if c.name() == "name" {
				m.name = section{c.pos, s.end}
			}
			if c.err != nil {
				return c.err
			}
			continue
		}
		next := bytes.IndexByte(order, id)
		if next < 0 {
			r.fail(at, "section order", fmt.Sprintf("section %d is unknown, given twice, or out of place", id))
			break
		}
		order = order[next+1:]
		m.secs[id] = s
	}
	return r.err
}
