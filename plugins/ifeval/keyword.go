package main

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Keywords, section marks and postscript marks go into the evaluator's patterns as they are, so they are
// regular expressions here too, with the escapes that have another meaning in Python spelled out.

const (
	spaceClass = `\s\v\x1c-\x1f\x85\pZ`
	wordClass  = `\pL\pN_`
)

// compile reads a pattern of Python's between two of ours. One that has no meaning here, such as "C++", is
// taken literally.
func compile(before, pattern, after string) *regexp.Regexp {
	re, err := regexp.Compile(before + pattern + after)
	if err != nil {
		re = regexp.MustCompile(before + regexp.QuoteMeta(pattern) + after)
	}
	return re
}

// literal says whether a pattern means itself, and so does its case: in ASCII all letters but k and s have just
// two cases.
func literal(pattern, s string) bool {
	if pattern == "" || regexp.QuoteMeta(pattern) != pattern {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] >= utf8.RuneSelf {
			return false
		}
	}
	return !strings.ContainsAny(s, "\u017f\u212a") // ſ and K
}

// find gives where k is, from the beginning on, whatever its case.
func find(s, k string) iter.Seq[int] {
	return func(yield func(int) bool) {
		first := k[0]
		other := first
		if letter := first | 0x20; 'a' <= letter && letter <= 'z' {
			other = first ^ 0x20
		}
		for i := 0; i+len(k) <= len(s); i++ {
			if (s[i] == first || s[i] == other) && strings.EqualFold(s[i:i+len(k)], k) && !yield(i) {
				return
			}
		}
	}
}

func keywords(a *args, s string) verdict {
	for _, k := range a.texts("keywords") {
		if literal(k, s) {
			if !found(s, k, false) {
				return no
			}
		} else if !compile("(?i)", k, "").MatchString(s) {
			return no
		}
	}
	return yes
}

// found says whether k is in s, by itself where alone.
func found(s, k string, alone bool) bool {
	for i := range find(s, k) {
		if !alone || bound(s, i) && bound(s, i+len(k)) {
			return true
		}
	}
	return false
}

// bound is \b at i.
func bound(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	return wordRune(before) != wordRune(after)
}

func keywordFrequency(a *args, s string) verdict {
	k := strip(a.text("keyword"))
	if k == "" {
		a.missing = true
		return unknown
	}
	n, end := 0, 0
	if literal(k, s) {
		for i := range find(s, k) {
			if i >= end { // matches do not overlap
				n++
				end = i + len(k)
			}
		}
	} else {
		n = a.matches(compile("(?i)", k, ""), s, "frequency")
	}
	return a.compare(n, "frequency", "relation", false)
}

// matches counts as far as the number to compare with needs it.
func (a *args) matches(re *regexp.Regexp, s, name string) int {
	limit := a.number(name)
	if !(limit < 1<<20) {
		limit = 1 << 20
	}
	return len(re.FindAllStringIndex(s, int(limit)+1))
}

// forbiddenWords looks for \bword\b. Go's \b knows ASCII only; whether there is a match does not depend on
// how much of its surroundings it takes.
func forbiddenWords(a *args, s string) verdict {
	for _, w := range a.texts("forbidden_words") {
		if literal(w, s) {
			if found(s, w, true) {
				return no
			}
		} else if compile("(?i)"+edge(w, true), w, edge(w, false)).MatchString(s) {
			return no
		}
	}
	return yes
}

// edge is \b before or after w.
func edge(w string, before bool) string {
	r, _ := utf8.DecodeLastRuneInString(w)
	if before {
		r, _ = utf8.DecodeRuneInString(w)
	}
	switch {
	case !wordRune(r):
		return "[" + wordClass + "]"
	case before:
		return "(?:^|[^" + wordClass + "])"
	}
	return "(?:$|[^" + wordClass + "])"
}

func letterFrequency(a *args, s string) verdict {
	letter := lower(a.text("letter"))
	if utf8.RuneCountInString(letter) != 1 {
		a.missing = true
		return unknown
	}
	return a.compare(strings.Count(lower(s), letter), "let_frequency", "let_relation", false)
}

// sections counts the marks that have a number behind them: \s?MARK\s?\d+\s?.
func sections(a *args, s string) verdict {
	mark := strip(a.text("section_spliter"))
	if regexp.QuoteMeta(mark) != mark || mark == "" {
		re := compile("", mark, "["+spaceClass+`]?\p{Nd}+`)
		return a.atLeast(a.matches(re, s, "num_sections"), "num_sections")
	}
	n := 0
	for {
		i := strings.Index(s, mark)
		if i < 0 {
			return a.atLeast(n, "num_sections")
		}
		rest := s[i+len(mark):]
		if r, size := utf8.DecodeRuneInString(rest); space(r) {
			rest = rest[size:]
		}
		if r, _ := utf8.DecodeRuneInString(rest); unicode.IsDigit(r) {
			n++
			s = strings.TrimLeftFunc(rest, unicode.IsDigit)
		} else {
			s = s[i+1:]
		}
	}
}

func postscript(a *args, s string) verdict {
	mark := strip(a.text("postscript_marker"))
	s = lower(s)
	switch mark {
	case "P.P.S":
		mark = `p\.[` + spaceClass + `]?p\.[` + spaceClass + `]?s`
	case "P.S.":
		mark = `p\.[` + spaceClass + `]?s\.`
	default:
		mark = lower(mark)
	}
	return is(compile("", mark, "").MatchString(s))
}
