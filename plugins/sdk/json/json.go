// Package json reads JSON into plain Go values.
//
// It is for guests: a module with encoding/json is 1.5 MB larger and takes twice as long to compile.
// It accepts what RFC 8259 does and nothing else; invalid UTF-8 and lone surrogates become U+FFFD, as
// in encoding/json, and of equal keys the last counts. Values own their memory.
package json

import (
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds nesting, so that hostile input cannot grow the stack.
const maxDepth = 256

// Parse reads the one value in b: nil, bool, int64 (a number without fraction and exponent that fits),
// float64, string, []any or map[string]any.
func Parse(b []byte) (any, error) {
	p := &parser{b: b}
	p.space()
	v := p.value(0)
	p.space()
	if p.err == nil && p.pos < len(b) {
		p.fail("something follows the value")
	}
	if p.err != nil {
		return nil, p.err
	}
	return v, nil
}

type parser struct {
	b   []byte
	pos int
	err error
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = errors.New("json: " + what + " at byte " + strconv.Itoa(p.pos))
		p.pos = len(p.b)
	}
}

func (p *parser) peek() byte {
	if p.pos < len(p.b) {
		return p.b[p.pos]
	}
	return 0
}

func (p *parser) space() {
	for p.pos < len(p.b) {
		switch p.b[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) any {
	if depth > maxDepth {
		p.fail("nested too deep")
		return nil
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.text()
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 't':
		p.word("true")
		return true
	case c == 'f':
		p.word("false")
		return false
	case c == 'n':
		p.word("null")
		return nil
	}
	p.fail("no value")
	return nil
}

func (p *parser) word(w string) {
	if len(p.b)-p.pos < len(w) || string(p.b[p.pos:p.pos+len(w)]) != w {
		p.fail("no value")
		return
	}
	p.pos += len(w)
}

func (p *parser) object(depth int) any {
	m := map[string]any{}
	p.pos++
	p.space()
	if p.peek() == '}' {
		p.pos++
		return m
	}
	for p.err == nil {
		if p.peek() != '"' {
			p.fail("no key")
			break
		}
		k := p.text()
		p.space()
		if p.peek() != ':' {
			p.fail("no colon")
			break
		}
		p.pos++
		p.space()
		m[k] = p.value(depth + 1)
		if p.next('}') {
			break
		}
	}
	return m
}

func (p *parser) array(depth int) any {
	list := []any{}
	p.pos++
	p.space()
	if p.peek() == ']' {
		p.pos++
		return list
	}
	for p.err == nil {
		list = append(list, p.value(depth+1))
		if p.next(']') {
			break
		}
	}
	return list
}

// next reads what follows an element: the end, or a comma and room.
func (p *parser) next(end byte) (done bool) {
	p.space()
	switch p.peek() {
	case end:
		p.pos++
		return true
	case ',':
		p.pos++
		p.space()
		return false
	}
	p.fail("no comma")
	return true
}

func (p *parser) digits() bool {
	begin := p.pos
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos > begin
}

func (p *parser) number() any {
	begin, whole := p.pos, true
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
	} else if !p.digits() {
		p.fail("bad number")
		return nil
	}
	if p.peek() == '.' {
		p.pos++
		whole = false
		if !p.digits() {
			p.fail("bad number")
			return nil
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		whole = false
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if !p.digits() {
			p.fail("bad number")
			return nil
		}
	}
	s := string(p.b[begin:p.pos])
	if whole {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i
		}
	}
	f, _ := strconv.ParseFloat(s, 64)
	if math.IsInf(f, 0) {
		p.fail("number out of range")
	}
	return f
}

func (p *parser) text() string {
	p.pos++
	begin := p.pos
	for p.pos < len(p.b) { // most strings have nothing to undo
		c := p.b[p.pos]
		if c == '"' {
			p.pos++
			return string(p.b[begin : p.pos-1])
		}
		if c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
		p.pos++
	}
	out := append([]byte(nil), p.b[begin:p.pos]...)
	for p.pos < len(p.b) {
		switch c := p.b[p.pos]; {
		case c == '"':
			p.pos++
			return string(out)
		case c == '\\':
			out = p.escape(out)
		case c < ' ':
			p.fail("control character in a string")
		case c < utf8.RuneSelf:
			out = append(out, c)
			p.pos++
		default:
			r, n := utf8.DecodeRune(p.b[p.pos:])
			out = utf8.AppendRune(out, r)
			p.pos += n
		}
	}
	p.fail("a string does not end")
	return ""
}

func (p *parser) escape(out []byte) []byte {
	p.pos++
	c := p.peek()
	p.pos++
	switch c {
	case '"', '\\', '/':
		return append(out, c)
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'u':
		r := p.hex4()
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if p.pos+1 < len(p.b) && p.b[p.pos] == '\\' && p.b[p.pos+1] == 'u' {
				back := p.pos
				p.pos += 2
				if low = utf16.DecodeRune(r, p.hex4()); low == utf8.RuneError && p.err == nil {
					p.pos = back
				}
			}
			r = low // RuneError, or -1, which is written as U+FFFD
		}
		return utf8.AppendRune(out, r)
	}
	p.pos--
	p.fail("bad escape")
	return out
}

func (p *parser) hex4() (r rune) {
	if len(p.b)-p.pos < 4 {
		p.fail("bad escape")
		return 0
	}
	for _, c := range p.b[p.pos : p.pos+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			p.fail("bad escape")
			return 0
		}
		r = r<<4 | rune(c)
	}
	p.pos += 4
	return r
}
