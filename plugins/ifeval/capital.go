package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// countCapitalWords is how many tokens of nltk.word_tokenize are in capitals. Of its rules those are here that
// can change that number: what is split off a word, not how quotation marks are rewritten.
func countCapitalWords(s string) (n int) {
	for run := range strings.FieldsFuncSeq(s, space) {
		for len(run) > 0 {
			word, used := cutWord(run)
			run = run[used:]
			n += capitals(word)
		}
	}
	return n
}

// cutWord is what stands before the next mark that stands by itself, and how many bytes it takes with it.
func cutWord(s string) (word string, used int) {
	for i, r := range s {
		if wordRune(r) {
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		rest := s[i+size:]
		next, _ := utf8.DecodeRuneInString(rest)
		switch {
		case alone(r):
			return s[:i], len(s) - len(rest)
		case (r == ':' || r == ',') && !unicode.IsDigit(next): // not within a number
			return s[:i], len(s) - len(rest)
		case (r == '.' || r == '-' || r == '\'') && next == r:
			return s[:i], len(s) - len(strings.TrimLeft(rest, string(r)))
		}
	}
	return s, len(s)
}

// alone are the marks that stand by themselves wherever they are.
func alone(r rune) bool {
	switch r {
	case '"', '`', ';', '@', '#', '$', '%', '&', '?', '!', '*', '[', ']', '(', ')', '{', '}', '<', '>',
		'«', '»', '“', '”', '‘', '’', '„', '\u2012', '\u2013', '\u2014', '\u2015':
		return true
	}
	return false
}

// capitals counts the parts of a word that are in capitals.
func capitals(word string) (n int) {
	if strings.IndexFunc(word, upperRune) < 0 {
		return 0
	}
	word, tail := clitic(word, "'s", "'m", "'d", "'")
	n += oneIf(isUpper(tail))
	word, tail = clitic(word, "'ll", "'re", "'ve", "n't")
	n += oneIf(isUpper(tail))
	return n + upperParts(word)
}

// clitic splits one of the endings off a word, in small letters or in capitals but not mixed.
func clitic(word string, endings ...string) (head, tail string) {
	if i := strings.LastIndexByte(word, '\''); i < len(word)-3 || i < 0 {
		return word, ""
	}
	for _, e := range endings {
		for _, form := range []string{e, strings.ToUpper(e)} {
			rest, ok := strings.CutSuffix(word, form)
			if ok && rest != "" && rest[len(rest)-1] != '\'' {
				return rest, form
			}
		}
	}
	return word, ""
}

// upperParts counts a word, or the parts of one that is two: CANNOT is CAN and NOT.
func upperParts(word string) int {
	if len(word) < len("D'YE") {
		return oneIf(isUpper(word))
	}
	for _, c := range [...]struct{ whole, first string }{
		{"CANNOT", "CAN"},
		{"GIMME", "GIM"},
		{"GONNA", "GON"},
		{"GOTTA", "GOT"},
		{"LEMME", "LEM"},
		{"WANNA", "WAN"},
		{"D'YE", "D"},
		{"MORE'N", "MORE"},
	} {
		i := strings.Index(word, c.whole)
		if i < 0 {
			continue
		}
		before, after := word[:i], word[i+len(c.whole):]
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !wordRune(last) && !wordRune(next) {
			return oneIf(isUpper(before+c.first)) + 1 + oneIf(isUpper(after))
		}
	}
	return oneIf(isUpper(word))
}

func oneIf(ok bool) int {
	if ok {
		return 1
	}
	return 0
}
