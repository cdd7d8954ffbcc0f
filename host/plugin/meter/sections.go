package meter

import "fmt"

// ValType is a value's type as the format encodes it.
type ValType byte

// Value types of core 2.0.
const (
	I32       ValType = 0x7f
	I64       ValType = 0x7e
	F32       ValType = 0x7d
	F64       ValType = 0x7c
	V128      ValType = 0x7b
	FuncRef   ValType = 0x70
	ExternRef ValType = 0x6f
)

func (t ValType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return fmt.Sprintf("type %#x", byte(t))
}

// FuncType is a function's signature.
type FuncType struct{ Params, Results []ValType }

// Kind is what an import or export is.
type Kind byte

// Kinds as the format encodes them.
const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// Import is one import in the module's order. Type is set for functions.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         FuncType
}

// Export is one export in the module's order. Type is set for functions.
type Export struct {
	Name string
	Kind Kind
	Type FuncType

	index uint32
}

func (m *module) parseSection(id byte, r *reader) {
	switch id {
	case secStart:
		at := r.pos
		m.start, m.hasStart = r.u32(), true
		r.below(at, "function index", m.start, uint32(len(m.funcs)))
		return
	case secDataCount:
		m.dataCount, m.hasDataCount = r.u32(), true
		return
	}
	at := r.pos
	n := r.count(sectionName(id) + " count")
	m.caps.section(r, at, id, n)
	for i := 0; i < n && r.err == nil; i++ {
		switch id {
		case secType:
			m.parseType(r)
		case secImport:
			m.parseImport(r)
		case secFunction:
			m.funcs = append(m.funcs, m.typeIndex(r))
		case secTable:
			m.tables = append(m.tables, parseTable(r))
		case secMemory:
			m.mems = append(m.mems, parseLimits(r))
		case secGlobal:
			g := parseGlobalType(r)
			g.init = m.parseConst(r)
			m.globals = append(m.globals, g)
		case secExport:
			m.parseExport(r)
		case secElement:
			m.parseElement(r)
		case secCode:
			body := r.bytes()
			m.bodies = append(m.bodies, section{r.pos - len(body), r.pos})
		case secData:
			m.parseData(r)
		}
	}
}

func (m *module) typeIndex(r *reader) uint32 {
	at := r.pos
	i := r.u32()
	r.below(at, "type index", i, uint32(len(m.types)))
	return i
}

func (m *module) parseType(r *reader) {
	if at := r.pos; r.byte() != 0x60 {
		r.fail(at, "type", "not a function type")
	}
	at := r.pos
	t := FuncType{Params: valTypes(r), Results: valTypes(r)}
	m.caps.signature(r, at, t)
	m.types = append(m.types, t)
}

func valTypes(r *reader) []ValType {
	n := r.count("type")
	if n == 0 {
		return nil
	}
	ts := make([]ValType, n)
	for i := range ts {
		ts[i] = valType(r)
	}
	return ts
}

func valType(r *reader) ValType {
	at := r.pos
	t := ValType(r.byte())
	if (t < V128 || t > I32) && t != FuncRef && t != ExternRef {
		r.fail(at, "value type", t.String())
	}
	return t
}

func (m *module) parseImport(r *reader) {
	im := Import{Module: r.name(), Name: r.name()}
	at := r.pos
	im.Kind = Kind(r.byte())
	switch im.Kind {
	case KindFunc:
		t := m.typeIndex(r)
		m.funcs = append(m.funcs, t)
		m.nImpFuncs++
		if r.err == nil {
			im.Type = m.types[t]
		}
	case KindTable:
		m.tables = append(m.tables, parseTable(r))
		m.nImpTables++
	case KindMemory:
		m.mems = append(m.mems, parseLimits(r))
		m.nImpMems++
	case KindGlobal:
		m.globals = append(m.globals, parseGlobalType(r))
		m.nImpGlobals++
	default:
		r.fail(at, "import kind", fmt.Sprint(im.Kind))
	}
	m.imports = append(m.imports, im)
}

func parseTable(r *reader) table {
	t := refType(r)
	return table{t, parseLimits(r)}
}

// refType is one byte: the longer forms of later versions would shift what follows.
func refType(r *reader) ValType {
	at := r.pos
	t := ValType(r.byte())
	if t != FuncRef && t != ExternRef {
		r.fail(at, "reference type", t.String())
	}
	return t
}

func parseLimits(r *reader) limits {
	at := r.pos
	flags := r.byte()
	l := limits{min: r.u32()}
	switch flags {
	case 0:
	case 1:
		l.max, l.hasMax = r.u32(), true
	default:
		r.fail(at, "limits", fmt.Sprintf("flags %#x: shared or 64-bit", flags))
	}
	return l
}

func parseGlobalType(r *reader) global {
	g := global{typ: valType(r)}
	at := r.pos
	mut := r.byte()
	if mut > 1 {
		r.fail(at, "global", fmt.Sprintf("mutability %d", mut))
	}
	g.mutable = mut == 1
	return g
}

func (m *module) parseConst(r *reader) constExpr {
	var c constExpr
	c.pos = r.pos
	c.op = r.byte()
	at := r.pos
	switch c.op {
	case opI32Const:
		c.i32 = int32(r.s(32))
	case opI64Const:
		r.s(64)
	case opF32Const:
		r.skip(4)
	case opF64Const:
		r.skip(8)
	case opGlobalGet:
		c.index = r.u32()
		r.below(at, "global index", c.index, uint32(len(m.globals)))
	case opRefNull:
		refType(r)
	case opRefFunc:
		c.index = r.u32()
		r.below(at, "function index", c.index, uint32(len(m.funcs)))
	case prefixSIMD:
		if r.byte() != simdConst {
			r.fail(at, "constant expression", "not a constant")
		}
		r.skip(16)
	default:
		r.fail(c.pos, "constant expression", fmt.Sprintf("opcode %#x", c.op))
	}
	if at := r.pos; r.byte() != opEnd {
		r.fail(at, "constant expression", "more than one instruction")
	}
	c.end = r.pos
	return c
}

func (m *module) parseExport(r *reader) {
	e := Export{Name: r.name()}
	at := r.pos
	e.Kind = Kind(r.byte())
	counts := [...]int{len(m.funcs), len(m.tables), len(m.mems), len(m.globals)}
	if int(e.Kind) >= len(counts) {
		r.fail(at, "export kind", fmt.Sprint(e.Kind))
		return
	}
	at = r.pos
	e.index = r.u32()
	r.below(at, "export index", e.index, uint32(counts[e.Kind]))
	if r.err == nil && e.Kind == KindFunc {
		e.Type = m.types[m.funcs[e.index]]
	}
	m.exports = append(m.exports, e)
}

// Bits of an element segment's flags; active segments have bit 0 clear.
const (
	elemNotActive = 1
	dataPassive   = 1
	elemExplicit  = 2 // active: names its table; else: declarative
	elemExprs     = 4
)

func (m *module) parseElement(r *reader) {
	at := r.pos
	e := element{flags: r.u32()}
	if e.flags > 7 {
		r.fail(at, "element flags", fmt.Sprint(e.flags))
	}
	if e.flags&elemNotActive == 0 {
		at = r.pos
		if e.flags&elemExplicit != 0 {
			e.table = r.u32()
		}
		r.below(at, "table index", e.table, uint32(len(m.tables)))
		e.offset = m.parseConst(r)
	}
	if e.flags&(elemNotActive|elemExplicit) != 0 {
		from := r.pos
		if e.flags&elemExprs != 0 {
			refType(r)
		} else {
			r.zero("element kind")
		}
		e.kind = m.b[from:r.pos]
	}
	at = r.pos
	n := r.count("element count")
	m.elemEntries += n
	m.caps.entries(r, at, m.elemEntries)
	for i := 0; i < n && r.err == nil; i++ {
		if e.flags&elemExprs != 0 {
			e.exprs = append(e.exprs, m.parseConst(r))
			continue
		}
		at := r.pos
		f := r.u32()
		r.below(at, "function index", f, uint32(len(m.funcs)))
		e.funcs = append(e.funcs, f)
	}
	m.elems = append(m.elems, e)
}

func (m *module) parseData(r *reader) {
	at := r.pos
	d := segment{flags: r.u32()}
	switch d.flags {
	case 1:
	case 0, 2:
		at = r.pos
		var mem uint32
		if d.flags == 2 {
			mem = r.u32()
		}
		r.below(at, "memory index", mem, uint32(len(m.mems)))
		d.offset = m.parseConst(r)
	default:
		r.fail(at, "data flags", fmt.Sprint(d.flags))
	}
	d.bytes = r.bytes()
	m.data = append(m.data, d)
}
