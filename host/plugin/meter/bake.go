package meter

import (
	"encoding/binary"
	"fmt"
)

const pageSize = 64 << 10

// Bake makes the bare module of a warmed image out of a rewritten module: its memory begins with
// the image's size, mutable globals begin with the given values, and there is no data section: the
// host writes the image into each instance itself. Names, indices and code stay as they are.
//
// The image must be whole pages. Globals are named by the module's exports of them, fuel and depth
// included, and given as the engine gives their bits; those left out keep their first value.
//
// # Errors
//
// *[Refusal] when the module is malformed or has state that an image does not hold: memory that it
// imports, data that it drops or reads again, a start function, a vector or reference among the
// globals, or when globals name what is not there.
func Bake(b, image []byte, globals map[string]uint64) ([]byte, error) {
	m, refusal := parse(b, nil)
	if refusal != nil {
		return nil, refusal
	}
	refuse := func(id byte, rule, saw string) error {
		return &Refusal{Section: sectionName(id), Offset: m.secs[id].pos, Rule: rule, Saw: saw}
	}
	if len(m.mems) != 1 || m.nImpMems > 0 {
		return nil, refuse(secMemory, "memory", "not one of its own")
	}
	if m.hasStart {
		return nil, refuse(secStart, "start function", "given")
	}
	if len(image)%pageSize != 0 || len(image) > pageSize*pageSize {
		return nil, refuse(secMemory, "image size", fmt.Sprintf("%d bytes are not whole pages", len(image)))
	}
	mem, pages := m.mems[0], uint32(len(image)/pageSize)
	if pages < mem.min || mem.hasMax && pages > mem.max {
		return nil, refuse(secMemory, "image size", fmt.Sprintf("%d pages", pages))
	}
	mem.min = pages
	seen, refusal := m.seen()
	if refusal != nil {
		return nil, refusal
	}
	if seen.Segments {
		return nil, refuse(secData, "data segments", "used after the start")
	}
	values, err := m.bakeGlobals(globals)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(b)), header...)
	for _, id := range sectionOrder() {
		s := m.content(id)
		switch id {
		case secMemory:
			s = append(appendU32(nil, 1), limitFlags(mem))
			s = appendU32(s, mem.min)
			if mem.hasMax {
				s = appendU32(s, mem.max)
			}
		case secGlobal:
			if s != nil {
				s = m.bakedSection(values)
			}
		case secData, secDataCount:
			continue
		}
		if s != nil {
			out = appendBytes(append(out, id), s)
		}
	}
	if m.name.end != 0 {
		s := append(appendBytes(nil, "name"), b[m.name.pos:m.name.end]...)
		out = appendBytes(append(out, secCustom), s)
	}
	return out, nil
}

func limitFlags(l limits) byte {
	if l.hasMax {
		return 1
	}
	return 0
}

// bakeGlobals finds the own globals behind the names.
func (m *module) bakeGlobals(globals map[string]uint64) (map[int]uint64, error) {
	values := map[int]uint64{}
	for _, e := range m.exports {
		v, ok := globals[e.Name]
		if !ok || e.Kind != KindGlobal {
			continue
		}
		g := m.globals[e.index]
		if int(e.index) < m.nImpGlobals || !g.mutable || g.typ < F64 {
			return nil, &Refusal{Section: "global", Rule: "baked global", Saw: e.Name + ": imported, constant, " + g.typ.String()}
		}
		values[int(e.index)] = v
	}
	if len(values) != len(globals) {
		return nil, &Refusal{
			Section: "export", Offset: m.secs[secExport].pos, Rule: "baked globals",
			Saw: fmt.Sprintf("%d of %d names are exports of different globals", len(values), len(globals)),
		}
	}
	return values, nil
}

func (m *module) bakedSection(values map[int]uint64) []byte {
	own := m.globals[m.nImpGlobals:]
	s := appendU32(nil, uint32(len(own)))
	for i, g := range own {
		s = appendGlobalType(s, g)
		v, ok := values[m.nImpGlobals+i]
		if !ok {
			s = append(s, m.b[g.init.pos:g.init.end]...)
			continue
		}
		switch g.typ {
		case I32:
			s = appendS64(append(s, opI32Const), int64(int32(v)))
		case I64:
			s = appendS64(append(s, opI64Const), int64(v))
		case F32:
			s = binary.LittleEndian.AppendUint32(append(s, opF32Const), uint32(v))
		case F64:
			s = binary.LittleEndian.AppendUint64(append(s, opF64Const), v)
		default: // vectors and references were refused before
		}
		s = append(s, opEnd)
	}
	return s
}

// seen walks the code for what [Seen] says of it.
func (m *module) seen() (s Seen, refusal *Refusal) {
	var w body
	for i := range m.bodies {
		w.open(m, i)
		for w.next() {
			if w.instr.op == opEnd {
				w.pop()
			}
			s.add(w.instr.op)
		}
		if w.r.err != nil {
			return s, w.r.err
		}
	}
	return s, nil
}
