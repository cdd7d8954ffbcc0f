package main

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The evaluator's patterns for markup are scanned by hand, in one pass each: a completion may be large and
// the loose rule reads it eight times.

// countPlaceholders is how often \[.*?\] matches.
func countPlaceholders(s string) (n int) {
	for {
		i := strings.IndexByte(s, '[')
		if i < 0 {
			return n
		}
		j := strings.IndexAny(s[i:], "]\n")
		if j < 0 {
			return n
		}
		if s[i+j] == ']' {
			n++
		}
		s = s[i+j+1:]
	}
}

// bullets counts lines that begin with * or -: ^\s*\*[^\*].*$ and ^\s*-.*$ in multi-line mode. Both may begin
// on blank lines before, and the former's [^\*] may be the line's end.
func bullets(a *args, s string) verdict {
	want := a.number("num_bullets")
	return is(float64(countLines(s, '*')+countLines(s, '-')) == want)
}

func countLines(s string, mark byte) (n int) {
	for at := 0; at <= len(s); {
		rest := strings.TrimLeftFunc(s[at:], space)
		begin := len(s) - len(rest)
		if rest == "" {
			return n
		}
		if rest[0] == mark {
			if mark == '-' {
				n++
			} else if r, size := utf8.DecodeRuneInString(rest[1:]); size > 0 && r != '*' {
				n++
				begin += 1 + size // a line's end right after the mark belongs to the match
			}
		}
		end := strings.IndexByte(s[begin:], '\n')
		if end < 0 {
			return n
		}
		at = begin + end + 1
	}
	return n
}

// countHighlights is how many *texts* and **texts** are not blank; a double one counts as both rules find it.
func countHighlights(s string) (n int) {
	for rest := s; ; { // \*[^\n\*]*\*
		i := strings.IndexByte(rest, '*')
		if i < 0 {
			break
		}
		j := strings.IndexAny(rest[i+1:], "*\n")
		if j < 0 {
			break
		}
		if rest[i+1+j] == '*' && strip(rest[i+1:i+1+j]) != "" {
			n++
		}
		rest = rest[i+j+2:]
	}
	for rest := s; ; { // \*\*[^\n\*]*\*\*
		i := strings.Index(rest, "**")
		if i < 0 {
			return n
		}
		j := strings.IndexAny(rest[i+2:], "*\n")
		if j < 0 {
			return n
		}
		j += i + 2
		switch {
		case !strings.HasPrefix(rest[j:], "**"):
			rest = rest[i+1:]
		default:
			if strip(rest[i+2:j]) != "" {
				n++
			}
			rest = rest[j+2:]
		}
	}
}

// pieces takes s apart: those that are not blank, at most 3 of them, and how many they are. inner says whether
// there is a blank one between two separators.
func pieces(s, separator string) (some []string, n int, inner bool) {
	first, blank := true, false
	for p := range strings.SplitSeq(s, separator) {
		inner = inner || blank // it was not the last
		blank = false
		if p = strip(p); p != "" {
			if n++; n <= 3 {
				some = append(some, p)
			}
		} else {
			blank = !first
		}
		first = false
	}
	return some, n, inner
}

// paragraphs are separated by ***; blank ones are allowed at both ends only.
func paragraphs(a *args, s string) verdict {
	want := a.number("num_paragraphs")
	_, n, inner := pieces(s, "***")
	return is(!inner && float64(n) == want)
}

func twoResponses(s string) bool {
	some, n, inner := pieces(s, "******")
	return !inner && n == 2 && some[0] != some[1]
}

// nthParagraph counts paragraphs between empty lines, and compares the first word of one of them. Blank ones
// do not count, but stand in the way of the number.
func nthParagraph(a *args, s string) verdict {
	want, nth, first := a.number("num_paragraphs"), a.number("nth_paragraph"), lower(a.text("first_word"))
	if a.missing = a.missing || nth < 1 || nth > want; a.missing {
		return unknown
	}
	n, i, paragraph := 0, 0, ""
	for p := range strings.SplitSeq(s, "\n\n") {
		if i++; float64(i) == nth {
			paragraph = strip(p)
		}
		if strip(p) != "" {
			n++
		}
	}
	if float64(n) != want || paragraph == "" {
		return no
	}
	word := paragraph
	if i := strings.IndexFunc(word, space); i >= 0 {
		word = word[:i]
	}
	word = strings.TrimLeft(strings.TrimLeft(word, "'"), `"`)
	if i := strings.IndexAny(word, `.,?!'"`); i >= 0 {
		word = word[:i]
	}
	return is(lower(word) == first)
}

// hasTitle finds a line with <<something>>.
func hasTitle(s string) bool {
	for line := range strings.SplitSeq(s, "\n") {
		i, j := strings.Index(line, "<<"), strings.LastIndex(line, ">>")
		if i >= 0 && j >= i+3 && strip(strings.TrimRight(strings.TrimLeft(line[i:j+2], "<"), ">")) != "" {
			return true
		}
	}
	return false
}

func constrainedResponse(_ *args, s string) verdict {
	return is(slices.ContainsFunc([]string{"My answer is yes.", "My answer is no.", "My answer is maybe."}, func(o string) bool {
		return strings.Contains(s, o)
	}))
}

func repeatPrompt(a *args, s string) verdict {
	prompt := a.text("prompt_to_repeat")
	a.missing = a.missing || prompt == ""
	return is(strings.HasPrefix(lower(strip(s)), lower(strip(prompt))))
}

func endPhrase(a *args, s string) verdict {
	phrase := a.text("end_phrase")
	return is(strings.HasSuffix(lower(strings.Trim(strip(s), `"`)), lower(strip(phrase))))
}

func quoted(s string) bool {
	s = strip(s)
	return len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"'
}
