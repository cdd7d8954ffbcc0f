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

// literal says whether a pattern means itself. Such are nearly all, and are found without package regexp, which
// reads a large text many times slower.
func literal(pattern string) bool { return pattern != "" && regexp.QuoteMeta(pattern) == pattern }

// find gives where k begins and ends in s, from the beginning on, whatever its case.
func find(s, k string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		first, size := utf8.DecodeRuneInString(k)
		for i, r := range s {
			if !sameLetter(r, first) {
				continue
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			if m, ok := foldPrefix(s[i+n:], k[size:]); ok && !yield(i, i+n+m) {
				return
			}
		}
	}
}

// foldPrefix is how many bytes of s are prefix, whatever its case.
func foldPrefix(s, prefix string) (n int, ok bool) {
	for _, want := range prefix {
		r, size := utf8.DecodeRuneInString(s[n:])
		if size == 0 || !sameLetter(r, want) {
			return 0, false
		}
		n += size
	}
	return n, true
}

func sameLetter(a, b rune) bool {
	if a == b {
		return true
	}
	if a|b < utf8.RuneSelf {
		return a^b == 0x20 && 'a' <= a|0x20 && a|0x20 <= 'z'
	}
	for r := unicode.SimpleFold(a); r != a; r = unicode.SimpleFold(r) {
		if r == b {
			return true
		}
	}
	return false
}

func keywords(a *args, s string) verdict {
	for _, k := range a.texts("keywords") {
		if literal(k) {
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
	for begin, end := range find(s, k) {
		if !alone || bound(s, begin) && bound(s, end) {
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
	n, last := 0, 0
	if literal(k) {
		for begin, end := range find(s, k) {
			if begin >= last { // matches do not overlap
				n++
				last = end
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
		if literal(w) {
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
