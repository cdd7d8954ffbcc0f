package main

import (
	"strings"
	"unicode"
)

// The published evaluator is Python: white space, letters and case here are those of its str and re.

// space is what str.isspace and \s accept.
func space(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

func strip(s string) string { return strings.TrimFunc(s, space) }

// wordRune is \w: letters and numbers of every script, no combining marks, and the underscore.
func wordRune(r rune) bool {
	if r < 0x80 {
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// lower is str.lower, but for the final form of sigma.
func lower(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "İ", "i̇"))
}

func lowerRune(r rune) bool {
	if r < 0x80 {
		return 'a' <= r && r <= 'z'
	}
	return unicode.IsLower(r) || unicode.Is(unicode.Other_Lowercase, r)
}

func upperRune(r rune) bool {
	if r < 0x80 {
		return 'A' <= r && r <= 'Z'
	}
	return unicode.IsUpper(r) || unicode.Is(unicode.Other_Uppercase, r)
}

// isUpper is str.isupper: some letter has case, and all that have are capitals.
func isUpper(s string) bool {
	cased := false
	for _, r := range s {
		if lowerRune(r) || unicode.IsTitle(r) {
			return false
		}
		cased = cased || upperRune(r)
	}
	return cased
}

// isLower is str.islower.
func isLower(s string) bool {
	cased := false
	for _, r := range s {
		if upperRune(r) || unicode.IsTitle(r) {
			return false
		}
		cased = cased || lowerRune(r)
	}
	return cased
}

// countWords is how often \w+ matches.
func countWords(s string) (n int) {
	in := false
	for _, r := range s {
		w := wordRune(r)
		if w && !in {
			n++
		}
		in = w
	}
	return n
}
