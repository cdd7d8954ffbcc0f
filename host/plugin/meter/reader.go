package meter

import (
	"fmt"
	"unicode/utf8"
)

// reader reads a part of a module. Its first refusal sticks; after it every read gives zero.
type reader struct {
	b        []byte // the whole module, so that positions are offsets in the file
	pos, end int
	section  string
	err      *Refusal
}

func (r *reader) more() bool { return r.err == nil && r.pos < r.end }

func (r *reader) fail(at int, rule, saw string) {
	if r.err == nil {
		r.err = &Refusal{Section: r.section, Offset: at, Rule: rule, Saw: saw}
		r.pos = r.end
	}
}

// below refuses an index that is not one of n things.
func (r *reader) below(at int, rule string, i, n uint32) {
	if i >= n && r.err == nil {
		r.fail(at, rule, fmt.Sprint(i))
		r.err.Limit = fmt.Sprintf("below %d", n)
	}
}

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.fail(r.pos, "length", "unexpected end")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

func (r *reader) u32() uint32 {
	if r.pos < r.end && r.b[r.pos] < 0x80 {
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	at := r.pos
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v >= 1<<32 {
				break
			}
			return uint32(v)
		}
	}
	r.fail(at, "integer", "over 32 bits")
	return 0
}

// s reads a signed number of at most the given bits.
func (r *reader) s(bits int) int64 {
	at := r.pos
	var v int64
	for shift := 0; shift < bits; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c >= 0x80 {
			continue
		}
		if shift+7 < 64 && c&0x40 != 0 {
			v |= -1 << (shift + 7)
		}
		// The unused bits of the last byte repeat the sign.
		if used := bits - shift; used < 7 {
			if top := int8(c<<1) >> used; top != 0 && top != -1 {
				break
			}
		}
		return v
	}
	r.fail(at, "integer", fmt.Sprintf("over %d bits", bits))
	return 0
}

func (r *reader) skip(n int) {
	if n > r.end-r.pos {
		r.fail(r.pos, "length", "unexpected end")
		return
	}
	r.pos += n
}

// bytes reads a length and as many bytes; the result is a view.
func (r *reader) bytes() []byte {
	n := r.count("length")
	from := r.pos
	r.pos += n
	return r.b[from:r.pos:r.pos]
}

// count reads how many things follow. Each takes a byte at least, so no count is larger than what
// is left: nobody allocates for things that cannot be there.
func (r *reader) count(rule string) int {
	at := r.pos
	n := r.u32()
	if int64(n) > int64(r.end-r.pos) {
		r.fail(at, rule, fmt.Sprintf("%d in %d bytes", n, r.end-r.pos))
		return 0
	}
	return int(n)
}

func (r *reader) name() string {
	at := r.pos
	s := r.bytes()
	if !utf8.Valid(s) {
		r.fail(at, "name", "not UTF-8")
	}
	return string(s)
}

func (r *reader) zero(rule string) {
	if at := r.pos; r.byte() != 0 {
		r.fail(at, rule, "a reserved byte is not zero")
	}
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(appendU32(b, uint32(len(s))), s...)
}
