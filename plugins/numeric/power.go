package main

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fraction reads what makes a whole number v one: "/4" behind it, or " 1/2" or "½" as another part.
func (c *cursor) fraction(v float64) (float64, bool) {
	back := c.pos
	if f, ok := c.over(v); ok {
		return f, true
	}
	c.space()
	if r, size := utf8.DecodeRuneInString(c.rest()); vulgar(r) > 0 {
		c.pos += size
		return v + vulgar(r), true
	}
	if c.pos > back && digit(c.at(c.pos)) {
		top := c.small()
		if f, ok := c.over(top); ok && f < 1 {
			return v + f, true
		}
	}
	c.pos = back
	return 0, false
}

// over reads "/4" behind a numerator. A further slash makes it a date.
func (c *cursor) over(top float64) (float64, bool) {
	back := c.pos
	if (c.eat("/") || c.eat("⁄")) && digit(c.at(c.pos)) {
		bottom := c.small()
		next := c.at(c.pos)
		if bottom != 0 && next != '/' && (next != c.point || !digit(c.at(c.pos+1))) {
			return top / bottom, true
		}
	}
	c.pos = back
	return 0, false
}

// small reads digits.
func (c *cursor) small() float64 {
	var text []byte
	c.digits(&text)
	v, _ := strconv.ParseFloat(string(text), 64)
	return v
}

// latex reads \frac{3}{4} and its variants, or goes past the command's name.
func (c *cursor) latex() (float64, bool) {
	c.pos++
	name := c.pos
	c.word()
	switch c.s[name:c.pos] {
	case "frac", "dfrac", "tfrac", "cfrac":
		back := c.pos
		top, ok1 := c.braced()
		bottom, ok2 := c.braced()
		if ok1 && ok2 && bottom != 0 {
			return top / bottom, true
		}
		c.pos = back
	}
	return 0, false
}

// braced reads a number in braces.
func (c *cursor) braced() (float64, bool) {
	if !c.eat("{") {
		return 0, false
	}
	minus := c.eat("-")
	if !digit(c.at(c.pos)) {
		return 0, false
	}
	v, _, ok := c.decimal()
	if minus {
		v = -v
	}
	return v, ok && c.eat("}")
}

// powers reads "^3" and "× 10^3" behind v.
func (c *cursor) powers(v float64) float64 {
	if e, ok := c.exponent(); ok {
		return math.Pow(v, e)
	}
	back := c.pos
	c.space()
	for _, times := range []string{"×", "x", "X", "*", "·", "⋅", `\times`, `\cdot`} {
		if !c.eat(times) {
			continue
		}
		c.space()
		if c.eat("10") {
			if e, ok := c.exponent(); ok {
				return scale(v, e)
			}
		}
		break
	}
	c.pos = back
	return v
}

// scale is v × 10^e as it is when written with an e, so that both are the same number.
func scale(v, e float64) float64 {
	if math.Abs(e) > 1000 {
		return v * math.Pow(10, e)
	}
	f, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', -1, 64)+"e"+strconv.Itoa(int(e)), 64)
	return f
}

const superscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹"

// exponent reads "^3", "^{-3}", "^(3)", "**3" or superscript digits.
func (c *cursor) exponent() (float64, bool) {
	back := c.pos
	if c.eat("^") || c.eat("**") {
		end := ""
		if c.eat("{") {
			end = "}"
		} else if c.eat("(") {
			end = ")"
		}
		minus := c.eat("-") || c.eat("−")
		if digit(c.at(c.pos)) {
			if e := c.small(); c.eat(end) {
				return signed(e, minus), true
			}
		}
		c.pos = back
		return 0, false
	}
	minus := c.eat("⁻")
	e, found := 0.0, false
	for {
		r, size := utf8.DecodeRuneInString(c.rest())
		i := strings.IndexRune(superscripts, r)
		if i < 0 || r == utf8.RuneError {
			break
		}
		e = 10*e + float64(utf8.RuneCountInString(superscripts[:i]))
		found = true
		c.pos += size
	}
	if !found {
		c.pos = back
	}
	return signed(e, minus), found
}

func signed(v float64, minus bool) float64 {
	if minus {
		return -v
	}
	return v
}

// vulgar is the value of a fraction that is one character, 0 for any other.
func vulgar(r rune) float64 {
	switch r {
	case '½':
		return 1. / 2
	case '⅓':
		return 1. / 3
	case '⅔':
		return 2. / 3
	case '¼':
		return 1. / 4
	case '¾':
		return 3. / 4
	case '⅕':
		return 1. / 5
	case '⅖':
		return 2. / 5
	case '⅗':
		return 3. / 5
	case '⅘':
		return 4. / 5
	case '⅙':
		return 1. / 6
	case '⅚':
		return 5. / 6
	case '⅐':
		return 1. / 7
	case '⅛':
		return 1. / 8
	case '⅜':
		return 3. / 8
	case '⅝':
		return 5. / 8
	case '⅞':
		return 7. / 8
	case '⅑':
		return 1. / 9
	case '⅒':
		return 1. / 10
	}
	return 0
}
