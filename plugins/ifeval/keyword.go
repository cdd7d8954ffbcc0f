package main

import (
	"regexp"
	"strings"
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

// matches counts as far as the number to compare with needs it.
func (a *args) matches(re *regexp.Regexp, s, name string) int {
	limit := a.number(name)
	if !(limit < 1<<20) {
		limit = 1 << 20
	}
	return len(re.FindAllStringIndex(s, int(limit)+1))
}

func keywords(a *args, s string) verdict {
	for _, k := range a.texts("keywords") {
		if !compile("(?i)", k, "").MatchString(s) {
			return no
		}
	}
	return yes
}

func keywordFrequency(a *args, s string) verdict {
	k := strip(a.text("keyword"))
	if k == "" {
		a.missing = true
		return unknown
	}
	return a.compare(a.matches(compile("(?i)", k, ""), s, "frequency"), "frequency", "relation", false)
}

// forbiddenWords looks for \bword\b. Go's \b knows ASCII only; whether there is a match does not depend on
// how much of its surroundings it takes.
func forbiddenWords(a *args, s string) verdict {
	for _, w := range a.texts("forbidden_words") {
		if compile("(?i)"+edge(w, true), w, edge(w, false)).MatchString(s) {
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

// sections counts the marks that have a number behind them.
func sections(a *args, s string) verdict {
	mark := strip(a.text("section_spliter"))
	re := compile("["+spaceClass+"]?", mark, "["+spaceClass+`]?\p{Nd}+[`+spaceClass+"]?")
	return a.atLeast(a.matches(re, s, "num_sections"), "num_sections")
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
