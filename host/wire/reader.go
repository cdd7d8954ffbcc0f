package wire

import (
	"encoding/binary"
	"math"
	"strconv"
)

// reader reads scanned msgpack from a slice. The first mismatch sticks: it moves the reader to the
// end, every further read gives a zero value, and loops over lengths end.
type reader struct {
	b   []byte
	i   int
	err *mismatch
	// data is the last task data read: traces repeat the episode's, so equal bytes are shared.
	data Value
}

// mismatch is a value of another type than the schema has at that place.
type mismatch struct {
	at   int
	want string
}

func (r *reader) fail(at int, want string) {
	if r.err == nil {
		r.err = &mismatch{at: at, want: want}
	}
	r.i = len(r.b)
}

// peek is the next code, 0xc1 (which is never used) at the end.
func (r *reader) peek() byte {
	if r.i < len(r.b) {
		return r.b[r.i]
	}
	return 0xc1
}

func (r *reader) isMap() bool {
	c := r.peek()
	return c&0xf0 == 0x80 || c == 0xde || c == 0xdf
}

func (r *reader) isList() bool {
	c := r.peek()
	return c&0xf0 == 0x90 || c == 0xdc || c == 0xdd
}

func (r *reader) isStr() bool {
	c := r.peek()
	return c&0xe0 == 0xa0 || c >= 0xd9 && c <= 0xdb
}

// null takes a nil, if that is what comes.
func (r *reader) null() bool {
	if r.peek() == 0xc0 {
		r.i++
		return true
	}
	return false
}

// size takes a header: the code's own low bits, or one, two or four bytes of length.
func (r *reader) size(mask byte, fixed bool, bytes int) int {
	if fixed {
		n := int(r.b[r.i] & mask)
		r.i++
		return n
	}
	p := r.i + 1
	if p+bytes > len(r.b) {
		r.fail(r.i, "a length")
		return 0
	}
	r.i = p + bytes
	switch bytes {
	case 1:
		return int(r.b[p])
	case 2:
		return int(binary.BigEndian.Uint16(r.b[p:]))
	}
	return int(binary.BigEndian.Uint32(r.b[p:]))
}

// count is n, if so many elements can follow at all.
func (r *reader) count(at, n int) int {
	if n > len(r.b)-r.i {
		r.fail(at, "that many elements")
		return 0
	}
	return n
}

// mapLen takes a map's header; nil counts as an empty map.
func (r *reader) mapLen() int {
	at := r.i
	switch c := r.peek(); {
	case c&0xf0 == 0x80:
		return r.size(15, true, 0)
	case c == 0xde:
		return r.count(at, r.size(0, false, 2))
	case c == 0xdf:
		return r.count(at, r.size(0, false, 4))
	case c == 0xc0:
		r.i++
		return 0
	}
	r.fail(r.i, "a map")
	return 0
}

// listLen takes a list's header; nil counts as an empty list.
func (r *reader) listLen() int {
	at := r.i
	switch c := r.peek(); {
	case c&0xf0 == 0x90:
		return r.size(15, true, 0)
	case c == 0xdc:
		return r.count(at, r.size(0, false, 2))
	case c == 0xdd:
		return r.count(at, r.size(0, false, 4))
	case c == 0xc0:
		r.i++
		return 0
	}
	r.fail(r.i, "a list")
	return 0
}

// bytes takes a string or bin without copying it.
func (r *reader) bytes(want string) []byte {
	var n int
	at := r.i
	switch c := r.peek(); {
	case c&0xe0 == 0xa0:
		n = r.size(31, true, 0)
	case c == 0xd9 || c == 0xc4:
		n = r.size(0, false, 1)
	case c == 0xda || c == 0xc5:
		n = r.size(0, false, 2)
	case c == 0xdb || c == 0xc6:
		n = r.size(0, false, 4)
	default:
		r.fail(at, want)
		return nil
	}
	if n > len(r.b)-r.i {
		r.fail(at, want)
		return nil
	}
	r.i += n
	return r.b[r.i-n : r.i : r.i]
}

// key takes a map's key; integers come as decimal text.
func (r *reader) key() []byte {
	if r.isStr() {
		return r.bytes("a key")
	}
	if n, ok := r.int(); ok {
		return strconv.AppendInt(nil, n, 10)
	}
	return nil
}

// str takes a string; nil is "".
func (r *reader) str() string {
	if r.null() {
		return ""
	}
	if !r.isStr() {
		r.fail(r.i, "a string")
		return ""
	}
	switch b := r.bytes("a string"); string(b) {
	case "assistant": // the words that come with every message, without an allocation each
		return "assistant"
	case "user":
		return "user"
	case "system":
		return "system"
	case "tool":
		return "tool"
	case "stop":
		return "stop"
	case "function":
		return "function"
	case "/chat/completions":
		return "/chat/completions"
	default:
		return string(b)
	}
}

// optStr takes a string; nil is nil.
func (r *reader) optStr() *string {
	if r.null() {
		return nil
	}
	s := r.str()
	return &s
}

// int takes an integer that fits int64.
func (r *reader) int() (int64, bool) {
	at, c := r.i, r.peek()
	if c < 0x80 || c >= 0xe0 {
		r.i++
		return int64(int8(c)), true
	}
	if c >= 0xcc && c <= 0xd3 {
		n := 1 << (c & 3)
		if n > len(r.b)-at-1 {
			r.fail(at, "an integer")
			return 0, false
		}
		p := r.b[at+1:]
		r.i += 1 + n
		switch c {
		case 0xcc:
			return int64(p[0]), true
		case 0xcd:
			return int64(binary.BigEndian.Uint16(p)), true
		case 0xce:
			return int64(binary.BigEndian.Uint32(p)), true
		case 0xcf:
			if v := binary.BigEndian.Uint64(p); v <= math.MaxInt64 {
				return int64(v), true
			}
			r.fail(at, "a 64-bit signed integer")
			return 0, false
		case 0xd0:
			return int64(int8(p[0])), true
		case 0xd1:
			return int64(int16(binary.BigEndian.Uint16(p))), true
		case 0xd2:
			return int64(int32(binary.BigEndian.Uint32(p))), true
		default:
			return int64(binary.BigEndian.Uint64(p)), true
		}
	}
	r.fail(at, "an integer")
	return 0, false
}

// i64 takes an integer; nil is 0.
func (r *reader) i64() int64 {
	if r.null() {
		return 0
	}
	n, _ := r.int()
	return n
}

// f64 takes a float or an integer; nil is 0.
func (r *reader) f64() float64 {
	at, c := r.i, r.peek()
	switch {
	case c == 0xc0:
		r.i++
		return 0
	case c == 0xcb && len(r.b)-at >= 9:
		r.i += 9
		return math.Float64frombits(binary.BigEndian.Uint64(r.b[at+1:]))
	case c == 0xca && len(r.b)-at >= 5:
		r.i += 5
		return float64(math.Float32frombits(binary.BigEndian.Uint32(r.b[at+1:])))
	case c == 0xcf && len(r.b)-at >= 9:
		r.i += 9
		return float64(binary.BigEndian.Uint64(r.b[at+1:]))
	case c < 0x80 || c >= 0xe0 || c >= 0xcc && c <= 0xd3:
		n, _ := r.int()
		return float64(n)
	}
	r.fail(at, "a number")
	return 0
}

// bool takes a bool; nil is false.
func (r *reader) bool() bool {
	switch r.peek() {
	case 0xc0, 0xc2:
		r.i++
		return false
	case 0xc3:
		r.i++
		return true
	}
	r.fail(r.i, "a bool")
	return false
}

// value copies the next value; nil is nil.
func (r *reader) value() Value {
	if r.null() {
		return nil
	}
	start := r.i
	r.skip()
	if r.err != nil {
		return nil
	}
	return append(Value(nil), r.b[start:r.i]...)
}

// values appends the elements of a list.
func (r *reader) values(dst []Value) []Value {
	for range r.listLen() {
		dst = append(dst, r.value())
	}
	return dst
}

// skip passes over one value.
func (r *reader) skip() {
	for left := 1; left > 0 && r.err == nil; left-- {
		switch c := r.peek(); {
		case c < 0x80 || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3:
			r.i++
		case r.isMap():
			left += 2 * r.mapLen()
		case r.isList():
			left += r.listLen()
		case r.isStr() || c >= 0xc4 && c <= 0xc6:
			r.bytes("a string")
		default:
			r.f64()
		}
	}
}

// any decodes one value. Depth is bounded by the scan.
func (r *reader) any() any {
	switch c := r.peek(); {
	case c == 0xc0:
		r.i++
		return nil
	case c == 0xc2 || c == 0xc3:
		return r.bool()
	case r.isStr():
		return string(r.bytes("a string"))
	case c >= 0xc4 && c <= 0xc6:
		return append([]byte{}, r.bytes("bytes")...)
	case c == 0xcf && len(r.b)-r.i >= 9 && r.b[r.i+1] >= 0x80:
		r.i += 9
		return binary.BigEndian.Uint64(r.b[r.i-8:])
	case c == 0xca || c == 0xcb:
		return r.f64()
	case r.isMap():
		n := r.mapLen()
		m := make(map[string]any, n)
		for range n {
			k := string(r.key())
			m[k] = r.any()
		}
		return m
	case r.isList():
		l := make([]any, r.listLen())
		for i := range l {
			l[i] = r.any()
		}
		return l
	}
	n, _ := r.int()
	return n
}
