package main

import (
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// number is one that stands in a text:
//
//	1,234.5  1 234 (no-break or thin space)  1_234  1'234  1{,}234     thousands in groups of three
//	3/4  1 1/2  ½  1½  \frac{3}{4}                                     fractions
//	1.5e-3  1.5 × 10^-3  1.5*10^{3}  1.5 \times 10^3  10⁻³  2^10       powers
//	$5  -$5  $-5  5 €  5%  5\%  5 percent  1.5 million                 signs and units
//
// A minus is a sign where no letter, digit or closing bracket stands before it. Digits within a word (x2, H2O),
// versions (1.2.3) and dates with slashes are no numbers; "2nd" and "5km" are.
type number struct {
	value   float64
	percent bool
	text    string
}

// numbers finds the numbers of s, from its beginning. Those that are out of range are left out.
func numbers(s string, comma bool) iter.Seq[number] {
	return func(yield func(number) bool) {
		c := &cursor{s: s, point: '.', group: ','}
		if comma {
			c.point, c.group = ',', '.'
		}
		for c.pos < len(s) {
			begin := c.pos
			n, ok := c.number()
			if !ok {
				continue
			}
			if c.minus(begin) {
				n.value = -n.value
			}
			if math.IsInf(n.value, 0) || math.IsNaN(n.value) {
				continue
			}
			if n.text = s[begin:c.pos]; n.value < 0 && n.text[0] != '-' {
				n.text = "-" + n.text
			}
			if !yield(n) {
				return
			}
		}
	}
}

// cursor reads s from pos on.
type cursor struct {
	s            string
	pos          int
	point, group byte
}

func (c *cursor) rest() string { return c.s[c.pos:] }

func (c *cursor) at(i int) byte {
	if i >= 0 && i < len(c.s) {
		return c.s[i]
	}
	return 0
}

func digit(b byte) bool { return '0' <= b && b <= '9' }

func (c *cursor) eat(prefix string) bool {
	if strings.HasPrefix(c.rest(), prefix) {
		c.pos += len(prefix)
		return true
	}
	return false
}

// number reads the number at pos, or goes past what is none.
func (c *cursor) number() (n number, ok bool) {
	r, size := utf8.DecodeRuneInString(c.rest())
	switch {
	case digit(c.at(c.pos)), c.at(c.pos) == c.point && digit(c.at(c.pos+1)):
		n.value, ok = c.plain()
	case vulgar(r) > 0:
		c.pos += size
		n.value, ok = vulgar(r), true
	case r == '\\':
		n.value, ok = c.latex()
	case unicode.IsLetter(r) || r == '_': // a word, with the digits in it
		c.pos += size
		c.word()
	default:
		c.pos += size
	}
	if ok {
		c.suffixes(&n)
	}
	return n, ok
}

// word goes past letters, digits and underscores.
func (c *cursor) word() {
	i := strings.IndexFunc(c.rest(), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
	if i < 0 {
		i = len(c.rest())
	}
	c.pos += i
}

// minus says whether the number at begin has a minus sign, before or behind a currency's.
func (c *cursor) minus(begin int) bool {
	before := c.s[:begin]
	trimmed := before
	if r, size := utf8.DecodeLastRuneInString(before); unicode.Is(unicode.Sc, r) {
		trimmed = strings.TrimSuffix(before[:len(before)-size], `\`)
	}
	for _, b := range []string{before, trimmed} {
		for _, sign := range []string{"-", "−"} {
			if rest, ok := strings.CutSuffix(b, sign); ok {
				r, _ := utf8.DecodeLastRuneInString(rest)
				return rest == "" || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(")]}-_%", r)
			}
		}
	}
	return false
}

// plain reads digits with all that may belong to them.
func (c *cursor) plain() (float64, bool) {
	v, whole, ok := c.decimal()
	if !ok {
		return 0, false
	}
	if whole {
		if f, ok := c.fraction(v); ok {
			return f, true
		}
		if c.at(c.pos) == '/' && digit(c.at(c.pos+1)) { // a date, or a division by 0
			c.pos++
			c.dotted()
			return 0, false
		}
	}
	return c.powers(v), true
}

// decimal reads digits, in groups or not, and what follows the decimal mark.
func (c *cursor) decimal() (v float64, whole, ok bool) {
	var text []byte
	c.digits(&text)
	if n := len(text); n > 0 && n <= 3 {
		for sep := c.separator(); sep != "" && strings.HasPrefix(c.rest(), sep) && c.groupAt(c.pos+len(sep)); {
			c.pos += len(sep)
			c.digits(&text)
		}
	}
	whole = true
	if c.at(c.pos) == c.point && digit(c.at(c.pos+1)) {
		c.pos++
		whole = false
		text = append(text, '.')
		c.digits(&text)
		if c.at(c.pos) == c.point && digit(c.at(c.pos+1)) { // 1.2.3
			c.dotted()
			return 0, false, false
		}
	}
	if e := c.at(c.pos); e == 'e' || e == 'E' {
		sign := c.pos + 1
		if s := c.at(sign); s == '-' || s == '+' {
			sign++
		}
		end := sign
		for digit(c.at(end)) {
			end++
		}
		if r, _ := utf8.DecodeRuneInString(c.s[end:]); end > sign && !unicode.IsLetter(r) {
			text = append(text, c.s[c.pos:end]...)
			c.pos = end
			whole = false
		}
	}
	v, _ = strconv.ParseFloat(string(text), 64) // out of range: infinite, which is left out
	return v, whole, true
}

func (c *cursor) digits(text *[]byte) {
	begin := c.pos
	for digit(c.at(c.pos)) {
		c.pos++
	}
	*text = append(*text, c.s[begin:c.pos]...)
}

// dotted goes past the rest of a version or date.
func (c *cursor) dotted() {
	for b := c.at(c.pos); digit(b) || (b == '.' || b == ',' || b == '/') && digit(c.at(c.pos+1)); b = c.at(c.pos) {
		c.pos++
	}
}

// separator is what groups the thousands at pos, "" if nothing does.
func (c *cursor) separator() string {
	for _, sep := range []string{string(c.group), "{" + string(c.group) + "}", "_", "'", "’", "\u00a0", "\u202f", "\u2009", `\,`, `\!`} {
		if strings.HasPrefix(c.rest(), sep) && c.groupAt(c.pos+len(sep)) {
			return sep
		}
	}
	return ""
}

// groupAt says whether just three digits stand at i.
func (c *cursor) groupAt(i int) bool {
	return digit(c.at(i)) && digit(c.at(i+1)) && digit(c.at(i+2)) && !digit(c.at(i+3))
}

// suffixes reads a scale and a percent sign.
func (c *cursor) suffixes(n *number) {
	back := c.pos
	c.space()
	for _, scale := range []struct {
		word  string
		value float64
	}{{"thousand", 1e3}, {"million", 1e6}, {"billion", 1e9}, {"trillion", 1e12}} {
		if c.unit(scale.word) {
			n.value *= scale.value
			return
		}
	}
	if n.percent = c.eat("%") || c.eat(`\%`) || c.unit("percent") || c.unit("per cent"); !n.percent {
		c.pos = back
	}
}

// space goes past one space or none.
func (c *cursor) space() {
	if !c.eat(" ") {
		c.eat("\u00a0")
	}
}

// unit reads a word.
func (c *cursor) unit(word string) bool {
	end := c.pos + len(word)
	if end > len(c.s) || !strings.EqualFold(c.s[c.pos:end], word) {
		return false
	}
	if r, _ := utf8.DecodeRuneInString(c.s[end:]); unicode.IsLetter(r) {
		return false
	}
	c.pos = end
	return true
}
