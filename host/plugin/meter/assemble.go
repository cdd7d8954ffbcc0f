package meter

import (
	"slices"
	"strings"
)

// header is how every module begins.
const header = "\x00asm\x01\x00\x00\x00"

// assemble puts the new module together around its code.
func (x *rewriter) assemble(code []byte) []byte {
	out := make([]byte, 0, len(x.b)+len(code)/4+1024)
	out = append(out, header...)
	data, merged := x.mergeData()
	for _, id := range sectionOrder() {
		var s []byte
		switch id {
		case secType:
			s = x.typeSection()
		case secImport:
			s = x.importSection()
		case secFunction:
			s = x.functionSection()
		case secTable:
			s = x.tableSection()
		case secGlobal:
			s = x.globalSection()
		case secExport:
			s = x.exportSection()
		case secStart:
			if x.hasStart {
				s = appendU32(nil, x.function(x.start))
			}
		case secElement:
			s = x.elementSection()
		case secCode:
			s = code
		case secData:
			s = data
		case secDataCount:
			if !merged {
				s = x.content(id)
			}
		default:
			s = x.content(id)
		}
		if s != nil {
			out = appendBytes(append(out, id), s)
		}
	}
	if names := x.nameSection(); names != nil {
		out = appendBytes(append(out, secCustom), names)
	}
	return out
}

// content is a section as it was, nil when there was none.
func (m *module) content(id byte) []byte {
	s := m.secs[id]
	if s.end == 0 {
		return nil
	}
	return m.b[s.pos:s.end]
}

// extend starts a section with all n+more of its things, of which the n are copied.
func (x *rewriter) extend(id byte, n, more int) []byte {
	old := x.content(id)
	s := appendU32(make([]byte, 0, len(old)+256), uint32(n+more))
	if old != nil {
		r := x.reader(id)
		r.u32()
		s = append(s, x.b[r.pos:r.end]...)
	}
	return s
}

func (x *rewriter) typeSection() []byte {
	s := x.extend(secType, len(x.types), len(x.newTypes))
	for _, t := range x.newTypes {
		s = append(s, 0x60)
		for _, ts := range [][]ValType{t.Params, t.Results} {
			s = appendU32(s, uint32(len(ts)))
			for _, v := range ts {
				s = append(s, byte(v))
			}
		}
	}
	return s
}

func (x *rewriter) importSection() []byte {
	s := x.extend(secImport, len(x.imports), 1)
	s = appendBytes(appendBytes(s, x.opt.ImportModule), x.opt.ImportName)
	return appendU32(append(s, byte(KindFunc)), x.typeRefill)
}

func (x *rewriter) functionSection() []byte {
	types := []uint32{x.typeSlow, x.typeOp}
	if len(x.mems) > 0 {
		types = append(types, x.typeOp, x.typeOp, x.typeBulk, x.typeBulk)
		types = append(types, slices.Repeat([]uint32{x.typeBulk}, len(x.initFn))...)
	}
	s := x.extend(secFunction, len(x.bodies), len(types))
	for _, t := range types {
		s = appendU32(s, t)
	}
	return s
}

func (x *rewriter) tableSection() []byte {
	own := x.tables[x.nImpTables:]
	if len(own) == 0 {
		return nil
	}
	s := appendU32(nil, uint32(len(own)))
	for _, t := range own {
		if !t.hasMax || t.max > x.opt.MaxTable {
			t.max = x.opt.MaxTable
		}
		s = append(s, byte(t.elem), 1)
		s = appendU32(appendU32(s, t.min), t.max)
	}
	return s
}

func (x *rewriter) globalSection() []byte {
	own := x.globals[x.nImpGlobals:]
	s := appendU32(nil, uint32(len(own)+2+len(x.refs)))
	for _, g := range own {
		s = appendGlobalType(s, g)
		s = x.appendConst(s, g.init)
	}
	for _, v := range []int64{0, int64(x.opt.MaxDepth)} { // fuel, depth
		s = appendGlobalType(s, global{typ: I64, mutable: true})
		s = append(appendS64(append(s, opI64Const), v), opEnd)
	}
	for _, f := range x.refs {
		s = appendGlobalType(s, global{typ: FuncRef})
		s = append(appendU32(append(s, opRefFunc), x.function(f)), opEnd)
	}
	return s
}

func appendGlobalType(s []byte, g global) []byte {
	if g.mutable {
		return append(s, byte(g.typ), 1)
	}
	return append(s, byte(g.typ), 0)
}

// appendConst copies a constant expression; functions get their new index.
func (x *rewriter) appendConst(s []byte, c constExpr) []byte {
	if c.op == opRefFunc {
		return append(appendU32(append(s, opRefFunc), x.function(c.index)), opEnd)
	}
	return append(s, x.b[c.pos:c.end]...)
}

func (x *rewriter) exportSection() []byte {
	exports := append([]Export(nil), x.exports...)
	for i := range exports {
		if exports[i].Kind == KindFunc {
			exports[i].index = x.function(exports[i].index)
		}
	}
	if x.opt.ExportGlobals {
		gs := x.mutable()
		for i, g := range x.globals[x.nImpGlobals:] {
			if g.mutable {
				exports = append(exports, Export{Name: gs[0].Name, Kind: KindGlobal, index: uint32(x.nImpGlobals + i)})
				gs = gs[1:]
			}
		}
	}
	exports = append(exports,
		Export{Name: FuelExport, Kind: KindGlobal, index: x.fuel},
		Export{Name: DepthExport, Kind: KindGlobal, index: x.depth})
	s := appendU32(nil, uint32(len(exports)))
	for _, e := range exports {
		s = append(appendBytes(s, e.Name), byte(e.Kind))
		s = appendU32(s, e.index)
	}
	return s
}

func (x *rewriter) elementSection() []byte {
	if len(x.elems) == 0 {
		return x.content(secElement)
	}
	s := appendU32(make([]byte, 0, len(x.content(secElement))+256), uint32(len(x.elems)))
	for _, e := range x.elems {
		s = appendU32(s, e.flags)
		if e.flags&elemNotActive == 0 {
			if e.flags&elemExplicit != 0 {
				s = appendU32(s, e.table)
			}
			s = x.appendConst(s, e.offset)
		}
		s = append(s, e.kind...)
		s = appendU32(s, uint32(len(e.funcs)+len(e.exprs)))
		for _, f := range e.funcs {
			s = appendU32(s, x.function(f))
		}
		for _, c := range e.exprs {
			s = x.appendConst(s, c)
		}
	}
	return s
}

// maxName is how many bytes of a name are kept: the engine writes the module's before that of each function,
// and holds all of them.
const maxName = 256

// nameSection keeps the module's and the functions' names, for stack traces. One that cannot be
// read, or names more functions than there are, is left out.
func (x *rewriter) nameSection() []byte {
	if x.name.end == 0 {
		return nil
	}
	const moduleName, functionNames = 0, 1
	s := appendBytes(nil, "name")
	r := &reader{b: x.b, pos: x.name.pos, end: x.name.end}
	for r.more() {
		id := r.byte()
		body := r.bytes()
		switch id {
		case moduleName:
			f := &reader{b: x.b, pos: r.pos - len(body), end: r.pos}
			if name := f.name(); f.err != nil || f.pos != f.end || r.err != nil {
				return nil
			} else if name != "" {
				s = appendBytes(append(s, id), appendBytes(nil, shortName(name)))
			}
		case functionNames:
			f := &reader{b: x.b, pos: r.pos - len(body), end: r.pos}
			n := f.count("names")
			if n > len(x.funcs) {
				return nil
			}
			names := appendU32(make([]byte, 0, len(body)+len(body)/8), uint32(n))
			for ; n > 0 && f.err == nil; n-- {
				names = appendU32(names, x.function(f.u32()))
				names = appendBytes(names, shortName(f.name()))
			}
			if f.err != nil || f.pos != f.end {
				return nil
			}
			s = appendBytes(append(s, id), names)
		}
	}
	if r.err != nil {
		return nil
	}
	return s
}

// shortName is what is kept of a name.
func shortName(s string) string {
	if len(s) <= maxName {
		return s
	}
	return strings.ToValidUTF8(s[:maxName], "")
}
