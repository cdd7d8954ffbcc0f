package main

import (
	"strings"

	"github.com/wevalr/wevalr/plugins/sdk/json"
)

// find is the JSON text in a completion, right or not; found says whether there is anything that may be meant.
func find(s, where string) (text string, found bool) {
	s = strings.TrimSpace(strings.TrimPrefix(s, "\ufeff"))
	switch where {
	case "whole":
		return s, s != ""
	case "fenced":
		return fenced(s)
	}
	if whole, end := balanced(s); whole && end == len(s) || s != "" && !strings.ContainsAny(s, "{[`") {
		return s, scalar(s) || whole
	}
	if text, found := fenced(s); found {
		return text, true
	}
	return last(s)
}

// scalar says whether s may be JSON without brackets.
func scalar(s string) bool {
	return s == "null" || s == "true" || s == "false" || s[0] == '"' || s[0] == '-' || '0' <= s[0] && s[0] <= '9'
}

// fenced is the last code block that is marked as JSON, else the last that is not marked. A block that does not
// end goes to the end of the text: models run out of tokens.
func fenced(s string) (text string, found bool) {
	marked := false
	for s != "" {
		i := strings.Index(s, "```")
		if i < 0 {
			break
		}
		s = strings.TrimLeft(s[i:], "`")
		label, body, _ := strings.Cut(s, "\n")
		label, s = strings.ToLower(strings.TrimSpace(label)), body
		if j := strings.IndexByte(label, '`'); j >= 0 { // all on one line
			continue
		}
		end := strings.Index(body, "```")
		if end < 0 {
			end = len(body)
		}
		isJSON := strings.HasPrefix(label, "json")
		if isJSON || label == "" && !marked {
			text, found, marked = strings.TrimSpace(body[:end]), true, isJSON
		}
		s = strings.TrimLeft(body[end:], "`")
	}
	return text, found
}

// maxOpen bounds how many brackets without an end are looked at.
const maxOpen = 1000

// last is the last object in prose that has both its ends and is JSON; else the last such list, since "[1]" is a
// citation as often as JSON; else the last thing in brackets.
func last(s string) (text string, found bool) {
	best := 0
	for open := 0; open < maxOpen; {
		i := strings.IndexAny(s, "{[")
		if i < 0 {
			break
		}
		s = s[i:]
		ok, end := balanced(s)
		if !ok {
			open++
			s = s[1:]
			continue
		}
		rank := 1
		if _, err := json.Parse([]byte(s[:end])); err == nil {
			rank = 2
			if s[0] == '{' {
				rank = 3
			}
		}
		if rank >= best {
			text, best = s[:end], rank
		}
		s = s[end:]
	}
	return text, best > 0
}

// balanced says whether s begins with a bracket that has its end, and where that is.
func balanced(s string) (ok bool, end int) {
	if s == "" || s[0] != '{' && s[0] != '[' {
		return false, 0
	}
	var open []byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			open = append(open, c+2) // its end, in ASCII
		case '}', ']':
			if open[len(open)-1] != c {
				return false, 0
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return true, i + 1
			}
		}
	}
	return false, 0
}
