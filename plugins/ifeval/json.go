package main

import (
	"slices"
	"strings"
)

// jsonFormat says whether Python's json.loads takes s without its code fence. That is RFC 8259 and the names
// NaN, Infinity and -Infinity. Only the shape is checked, without recursion.
func jsonFormat(s string) bool {
	s = strip(s)
	for _, fence := range []string{"```json", "```Json", "```JSON", "```"} {
		s = strings.TrimPrefix(s, fence)
	}
	j := &shape{s: strip(strings.TrimSuffix(s, "```"))}
	return j.value() && j.s == ""
}

type shape struct{ s string }

const maxDepth = 990 // json.loads recurses, and fails in another way below that

func (j *shape) value() bool {
	var open []byte // the brackets that are open
	for {
		switch j.space(); {
		case j.s == "" || len(open) > maxDepth:
			return false
		case j.eat("{"):
			if j.space(); !j.eat("}") {
				if !j.key() {
					return false
				}
				open = append(open, '}')
				continue
			}
		case j.eat("["):
			if j.space(); !j.eat("]") {
				open = append(open, ']')
				continue
			}
		case !j.scalar():
			return false
		}
		for { // a value has ended: what is open goes on, or ends too
			if len(open) == 0 {
				return true
			}
			end := open[len(open)-1]
			j.space()
			if j.eat(string(end)) {
				open = open[:len(open)-1]
				continue
			}
			if !j.eat(",") {
				return false
			}
			if end == '}' {
				if j.space(); !j.key() {
					return false
				}
			}
			break
		}
	}
}

func (j *shape) eat(prefix string) bool {
	rest, ok := strings.CutPrefix(j.s, prefix)
	j.s = rest
	return ok
}

func (j *shape) space() { j.s = strings.TrimLeft(j.s, " \t\n\r") }

func (j *shape) key() bool {
	if !j.text() {
		return false
	}
	j.space()
	return j.eat(":")
}

func (j *shape) scalar() bool {
	if slices.ContainsFunc([]string{"null", "true", "false", "NaN", "Infinity", "-Infinity"}, j.eat) {
		return true
	}
	if j.s[0] == '"' {
		return j.text()
	}
	return j.number()
}

func (j *shape) text() bool {
	if !j.eat(`"`) {
		return false
	}
	for j.s != "" {
		switch c := j.s[0]; {
		case c == '"':
			j.s = j.s[1:]
			return true
		case c < ' ':
			return false
		case c != '\\':
			j.s = j.s[1:]
		case len(j.s) > 1 && strings.IndexByte(`"\/bfnrt`, j.s[1]) >= 0:
			j.s = j.s[2:]
		case len(j.s) > 5 && j.s[1] == 'u' && strings.Trim(j.s[2:6], "0123456789abcdefABCDEF") == "":
			j.s = j.s[6:]
		default:
			return false
		}
	}
	return false
}

// number takes -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?, as far as it goes.
func (j *shape) number() bool {
	j.eat("-")
	if !j.eat("0") && !j.digits() {
		return false
	}
	back := j.s
	if j.eat(".") && !j.digits() {
		j.s = back
		return true
	}
	back = j.s
	if j.eat("e") || j.eat("E") {
		if !j.eat("-") {
			j.eat("+")
		}
		if !j.digits() {
			j.s = back
		}
	}
	return true
}

func (j *shape) digits() bool {
	rest := strings.TrimLeft(j.s, "0123456789")
	ok := len(rest) < len(j.s)
	j.s = rest
	return ok
}
