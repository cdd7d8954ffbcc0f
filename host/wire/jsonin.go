package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonDepth is the deepest nesting that is read from JSON: a scanned message's, and what an episode
// wraps around a trace.
const jsonDepth = 128

// jsonReader turns JSON into msgpack. The text has passed json.Valid, so it looks at nothing twice.
type jsonReader struct {
	s []byte
	i int
}

// fromJSON appends one JSON text as msgpack: integers stay integers, what has a point or an
// exponent becomes a float.
//
// # Errors
//
// Invalid JSON (with its byte), nesting deeper than 128, a number that no 64 bits hold.
func fromJSON(dst, text []byte) ([]byte, error) {
	if !json.Valid(text) {
		var raw json.RawMessage
		err := json.Unmarshal(text, &raw)
		if se, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("byte %d: %w", se.Offset, err)
		}
		return nil, err
	}
	r := jsonReader{s: text}
	return r.value(dst, jsonDepth)
}

func (r *jsonReader) space() byte {
	for r.s[r.i] <= ' ' {
		r.i++
	}
	return r.s[r.i]
}

func (r *jsonReader) value(b []byte, depth int) ([]byte, error) {
	switch r.space() {
	case '{', '[':
		if depth == 0 {
			return nil, fmt.Errorf("byte %d: nested deeper than %d", r.i, jsonDepth)
		}
		return r.container(b, depth-1)
	case '"':
		return r.str(b), nil
	case 't':
		r.i += 4
		return append(b, 0xc3), nil
	case 'f':
		r.i += 5
		return append(b, 0xc2), nil
	case 'n':
		r.i += 4
		return append(b, 0xc0), nil
	}
	start := r.i
	for r.i < len(r.s) && strings.IndexByte("+-.0123456789eE", r.s[r.i]) >= 0 {
		r.i++
	}
	b, err := appendNumber(b, string(r.s[start:r.i]))
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", start, err)
	}
	return b, nil
}

// container writes a header of one byte first, which grows when the elements turn out to be many.
func (r *jsonReader) container(b []byte, depth int) ([]byte, error) {
	isMap := r.s[r.i] == '{'
	r.i++
	at, n := len(b), 0
	b = append(b, 0)
	for {
		switch r.space() {
		case '}', ']':
			r.i++
			return patchLen(b, at, n, isMap), nil
		case ',':
			r.i++
			r.space()
		}
		if isMap {
			b = r.str(b)
			r.space()
			r.i++ // the colon
		}
		var err error
		if b, err = r.value(b, depth); err != nil {
			return nil, err
		}
		n++
	}
}

// patchLen writes the header of a container whose body stands in b after one byte at `at`.
func patchLen(b []byte, at, n int, isMap bool) []byte {
	fix, code16 := byte(0x90), byte(0xdc)
	if isMap {
		fix, code16 = 0x80, 0xde
	}
	switch {
	case n <= 15:
		b[at] = fix | byte(n)
	case n <= math.MaxUint16:
		b = append(b, 0, 0)
		copy(b[at+3:], b[at+1:len(b)-2])
		b[at] = code16
		binary.BigEndian.PutUint16(b[at+1:], uint16(n))
	default:
		b = append(b, 0, 0, 0, 0)
		copy(b[at+5:], b[at+1:len(b)-4])
		b[at] = code16 + 1
		binary.BigEndian.PutUint32(b[at+1:], uint32(n))
	}
	return b
}

func (r *jsonReader) str(b []byte) []byte {
	r.i++
	start := r.i
	plain := true
	for r.s[r.i] != '"' {
		if c := r.s[r.i]; c == '\\' {
			plain = false
			r.i++
		} else if c >= utf8.RuneSelf {
			plain = false
		}
		r.i++
	}
	raw := r.s[start:r.i]
	r.i++
	if plain {
		return appendStr(b, raw)
	}
	return appendStr(b, unescape(raw))
}

// unescape resolves the escapes of a JSON string; lone surrogates and bad UTF-8 become U+FFFD.
func unescape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		c := s[i]
		if c != '\\' {
			r, n := utf8.DecodeRune(s[i:])
			out = utf8.AppendRune(out, r)
			i += n
			continue
		}
		i += 2
		switch c = s[i-1]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r := hex4(s[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				var low rune = -1
				if len(s)-i >= 6 && s[i] == '\\' && s[i+1] == 'u' {
					low = hex4(s[i+2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return out
}

func hex4(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[:4]), 16, 32)
	return rune(n)
}

// appendNumber writes a JSON number.
func appendNumber(b []byte, s string) ([]byte, error) {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return appendInt(b, n), nil
		}
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			return appendUint(b, n), nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("number %.40s: out of range", s)
	}
	return appendFloat(b, f), nil
}
