package plugin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/wevalr/wevalr/plugins/abi"
)

// module is what the bytes say without running or compiling anything.
// Layout: https://webassembly.github.io/spec/core/binary/modules.html
type module struct {
	imports  []moduleImport
	exports  []moduleExport
	memories []memoryLimits // its own, not imported ones
	start    bool
	custom   map[string][]byte // the two sections of ours
}

type moduleImport struct {
	module, name string
	kind         byte
}

type moduleExport struct {
	name string
	kind byte
}

type memoryLimits struct {
	min, max uint64 // pages; max 0 = none given
}

// External kinds of imports and exports.
const (
	kindFunc   = 0
	kindTable  = 1
	kindMemory = 2
	kindGlobal = 3
)

// Section numbers that are read.
const (
	sectionCustom = 0
	sectionImport = 2
	sectionMemory = 5
	sectionExport = 7
	sectionStart  = 8
)

var errShort = errors.New("unexpected end")

// parseModule reads the sections that matter here. It allocates no more than the input's size
// allows and never panics; the engine validates the rest.
func parseModule(b []byte) (*module, error) {
	if len(b) < 8 || string(b[:4]) != "\x00asm" {
		return nil, errors.New("not a WebAssembly module: it does not start with \\0asm")
	}
	if v := binary.LittleEndian.Uint32(b[4:]); v != 1 {
		return nil, fmt.Errorf("binary format version %d, want 1 (a component is not a module)", v)
	}
	m := &module{custom: map[string][]byte{}}
	r := &reader{b: b, pos: 8}
	seen := map[byte]bool{}
	for r.pos < len(b) {
		at := r.pos
		id := r.byte()
		body := r.bytes()
		if r.err != nil {
			return nil, fmt.Errorf("section at offset %d: %w", at, r.err)
		}
		if id != sectionCustom {
			if seen[id] {
				return nil, fmt.Errorf("section %d at offset %d: given twice", id, at)
			}
			seen[id] = true
		}
		if err := m.section(id, body); err != nil {
			return nil, fmt.Errorf("section %d at offset %d: %w", id, at, err)
		}
	}
	return m, nil
}

func (m *module) section(id byte, body []byte) error {
	r := &reader{b: body}
	switch id {
	case sectionCustom:
		name := r.name()
		if name == abi.SectionManifest || name == abi.SectionAssets {
			if _, twice := m.custom[name]; twice {
				return fmt.Errorf("custom section %s given twice", name)
			}
			m.custom[name] = body[r.pos:]
		}
	case sectionImport:
		for n := r.u32(); n > 0 && r.err == nil; n-- {
			im := moduleImport{module: r.name(), name: r.name(), kind: r.byte()}
			switch im.kind {
			case kindFunc:
				r.u32()
			case kindTable:
				r.byte()
				r.limits()
			case kindMemory:
				r.limits()
			case kindGlobal:
				r.byte()
				r.byte()
			default:
				return fmt.Errorf("import of unknown kind %d", im.kind)
			}
			m.imports = append(m.imports, im)
		}
	case sectionMemory:
		for n := r.u32(); n > 0 && r.err == nil; n-- {
			m.memories = append(m.memories, r.limits())
		}
	case sectionExport:
		for n := r.u32(); n > 0 && r.err == nil; n-- {
			m.exports = append(m.exports, moduleExport{name: r.name(), kind: r.byte()})
			r.u32()
		}
	case sectionStart:
		m.start = true
	}
	return r.err
}

// reader reads LEB128 and names; its first error sticks.
type reader struct {
	b   []byte
	pos int
	err error
}

func (r *reader) byte() byte {
	if r.err != nil || r.pos >= len(r.b) {
		r.err = errShort
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

func (r *reader) leb(bits uint) uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		if shift >= bits {
			r.err = errors.New("number too long")
			return 0
		}
		v |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			return v
		}
	}
}

func (r *reader) u32() uint32 {
	v := r.leb(35)
	if v > 1<<32-1 {
		r.err = errors.New("number over 32 bits")
		return 0
	}
	return uint32(v)
}

// bytes reads a length and as many bytes.
func (r *reader) bytes() []byte {
	n := int(r.u32())
	if r.err != nil || n > len(r.b)-r.pos {
		r.err = errShort
		return nil
	}
	s := r.b[r.pos : r.pos+n]
	r.pos += n
	return s
}

func (r *reader) name() string {
	s := r.bytes()
	if r.err == nil && !utf8.Valid(s) {
		r.err = errors.New("name is not UTF-8")
	}
	return string(s)
}

func (r *reader) limits() memoryLimits {
	var l memoryLimits
	flags := r.byte()
	l.min = r.leb(63)
	if flags&1 != 0 {
		l.max = r.leb(63)
	}
	return l
}

// appendSection adds a custom section at the end of a module's bytes.
func appendSection(b []byte, name string, body []byte) []byte {
	head := binary.AppendUvarint(nil, uint64(len(name)))
	head = append(head, name...)
	b = append(b, sectionCustom)
	b = binary.AppendUvarint(b, uint64(len(head)+len(body)))
	b = append(b, head...)
	return append(b, body...)
}
