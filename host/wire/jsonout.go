package wire

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// appendJSONString writes a JSON string; what is no UTF-8 becomes U+FFFD.
func appendJSONString(b []byte, s string) []byte { return appendEscaped(b, validUTF8(s)) }

// appendEscaped writes a JSON string as pydantic does: UTF-8 unescaped, only what must be escaped is.
func appendEscaped[S string | []byte](b []byte, s S) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

// appendJSONFloat writes the shortest text that reads back as the same float and is seen to be one:
// 1.0, not 1. NaN and infinities are null.
func appendJSONFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-5 || a >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if slices.Contains(b[start:], '.') {
		return b
	}
	return append(b, '.', '0')
}

// appendJSON writes the value. Nils of maps are dropped in the outermost `drop` levels of maps:
// those are the peer's models, which leave nil fields out; in free maps nil is a value.
func (v Value) appendJSON(b []byte, drop int) []byte {
	if len(v) == 0 {
		return append(b, "null"...)
	}
	r := reader{b: v}
	return r.toJSON(b, drop)
}

func (r *reader) toJSON(b []byte, drop int) []byte {
	switch c := r.peek(); {
	case c == 0xc0:
		r.i++
		return append(b, "null"...)
	case c == 0xc2 || c == 0xc3:
		return strconv.AppendBool(b, r.bool())
	case r.isStr():
		return appendEscaped(b, r.bytes("a string"))
	case c >= 0xc4 && c <= 0xc6:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, r.bytes("bytes"))
		return append(b, '"')
	case c == 0xca || c == 0xcb:
		return appendJSONFloat(b, r.f64())
	case c == 0xcf && len(r.b)-r.i >= 9:
		r.i += 9
		return strconv.AppendUint(b, binary.BigEndian.Uint64(r.b[r.i-8:]), 10)
	case r.isMap():
		return r.mapToJSON(b, drop)
	case r.isList():
		b = append(b, '[')
		for i := range r.listLen() {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.toJSON(b, drop)
		}
		return append(b, ']')
	}
	n, _ := r.int()
	return strconv.AppendInt(b, n, 10)
}

func (r *reader) mapToJSON(b []byte, drop int) []byte {
	b = append(b, '{')
	first := true
	for range r.mapLen() {
		k := r.key()
		if drop > 0 && r.null() {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendEscaped(b, k), ':')
		b = r.toJSON(b, drop-1)
	}
	return append(b, '}')
}
