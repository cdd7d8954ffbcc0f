package plugin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/wevalr/wevalr/plugins/abi"
)

// sectionCustom is the number of custom sections; all others are the meter's to read.
const sectionCustom = 0

var errShort = errors.New("unexpected end")

// customSections finds the two sections of ours in a module that passed the preflight. They are read
// from the bytes as they came: a metered module has none.
// Layout: https://webassembly.github.io/spec/core/binary/modules.html
func customSections(b []byte) (map[string][]byte, error) {
	custom := map[string][]byte{}
	for r := (&reader{b: b, pos: 8}); r.pos < len(b); {
		id := r.byte()
		body := r.bytes()
		if r.err != nil {
			return nil, r.err
		}
		if id != sectionCustom {
			continue
		}
		s := &reader{b: body}
		name := s.name()
		if name != abi.SectionManifest && name != abi.SectionAssets {
			continue
		}
		if s.err != nil {
			return nil, s.err
		}
		if _, twice := custom[name]; twice {
			return nil, fmt.Errorf("custom section %s given twice", name)
		}
		custom[name] = body[s.pos:]
	}
	return custom, nil
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

func (r *reader) u32() uint32 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		v |= uint64(c&0x7f) << shift
		if shift > 28 || v > 1<<32-1 {
			r.err = errors.New("number over 32 bits")
			return 0
		}
		if c&0x80 == 0 {
			return uint32(v)
		}
	}
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

// appendSection adds a custom section at the end of a module's bytes.
func appendSection(b []byte, name string, body []byte) []byte {
	head := binary.AppendUvarint(nil, uint64(len(name)))
	head = append(head, name...)
	b = append(b, sectionCustom)
	b = binary.AppendUvarint(b, uint64(len(head)+len(body)))
	b = append(b, head...)
	return append(b, body...)
}
