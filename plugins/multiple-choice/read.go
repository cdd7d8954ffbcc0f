package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// options are a task's.
type options struct {
	letters int      // how many there are; all of them where the texts are not known
	texts   []string // as [fold] gives them
}

func newOptions(texts []string) *options {
	o := &options{letters: len(texts)}
	if o.letters == 0 {
		o.letters = maxChoices
	}
	for _, t := range texts {
		o.texts = append(o.texts, fold(t))
	}
	return o
}

// fold makes texts comparable: small letters, one space between words, no punctuation around.
func fold(s string) string {
	return strings.ToLower(strings.Join(strings.Fields(trim(s)), " "))
}

// trim drops white space and what prose puts around an answer.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("*_`\"'“”‘’.,:;!?$#>", r) })
}

// letter is the choice that a byte names.
func (o *options) letter(c byte) choice {
	if n := choice(c|0x20) - 'a'; n >= 0 && int(n) < o.letters {
		return n
	}
	return none
}

// whole is the answer that all of s is.
func (o *options) whole(s string) choice {
	folded := fold(s)
	for i, t := range o.texts {
		if t == folded {
			return choice(i)
		}
	}
	got, rest := o.lead(trim(s))
	if got == none || trim(rest) == "" {
		return got
	}
	// "B) Paris": a letter with its own text.
	if o.texts != nil && o.texts[got] == fold(strings.TrimLeft(rest, ").]}: ")) {
		return got
	}
	return none
}

// lead is the letter at the beginning of s, in brackets or not, and what follows it.
func (o *options) lead(s string) (choice, string) {
	in := strings.TrimLeft(s, "([{*_ ")
	if in == "" {
		return none, s
	}
	got, rest := o.letter(in[0]), in[1:]
	if r, _ := utf8.DecodeRuneInString(rest); got == none || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\'' || r == '’' {
		return none, s
	}
	if len(in) < len(s) || rest != "" {
		rest = strings.TrimLeft(rest, ")]}*_")
	}
	return got, rest
}

// statement is the answer at the beginning of s, which is what somebody said the answer is; found says that there
// is one or more, of which more are none.
func (o *options) statement(s string) (got choice, found bool) {
	s = strings.TrimLeftFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("*_`\"'“‘:=$#>-", r) })
	for {
		rest, ok := cutWord(s)
		if !ok {
			break
		}
		s = rest
	}
	if got = o.prefix(s); got != none {
		return got, true
	}
	bare := strings.TrimLeft(s, "*_")
	if refuses(bare) {
		return none, true
	}
	got, rest := o.lead(s)
	if got == none {
		return none, false
	}
	after := strings.TrimLeft(rest, " \t")
	// A small letter may be a word, and so may "A": "the answer is a dog".
	if c := bare[0]; ('a' <= c && c <= 'z' || c == 'A' && o.texts != nil) && rest != "" && len(after) < len(rest) && startsWord(after) && !reason(after) {
		return none, false
	}
	for _, and := range []string{"or ", "and ", "/", ", ", "& "} {
		if more, ok := strings.CutPrefix(after, and); ok {
			if other, _ := o.lead(strings.TrimLeft(more, " ")); other != none && other != got {
				return none, true
			}
		}
	}
	return got, true
}

// refuses says that the answer is none of the options.
func refuses(s string) bool {
	s = strings.TrimLeft(s, "([{")
	for _, w := range []string{"none", "neither"} {
		if len(s) >= len(w) && strings.EqualFold(s[:len(w)], w) && boundary(s, len(w)) {
			return true
		}
	}
	return false
}

// cutWord drops what may stand between "is" and the answer.
func cutWord(s string) (string, bool) {
	for _, w := range []string{"option ", "choice ", "answer ", "letter ", "the ", "clearly ", "therefore ", "\\boxed{", "\\text{", "\\textbf{", "\\mathrm{"} {
		if len(s) >= len(w) && strings.EqualFold(s[:len(w)], w) {
			return strings.TrimLeft(s[len(w):], " *_"), true
		}
	}
	return s, false
}

func startsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

// reason says that what follows a letter goes on about it, so that it is not an article.
func reason(s string) bool {
	for _, w := range []string{"because", "since", "as ", "and ", "or ", "but ", "which", "is ", "for "} {
		if strings.HasPrefix(s, w) {
			return true
		}
	}
	return false
}

// prefix is the option whose text s begins with, the longest of them.
func (o *options) prefix(s string) choice {
	best, size := none, 0
	folded := fold(strings.TrimLeft(s[:min(len(s), maxText)], "([{"))
	for i, t := range o.texts {
		if len(t) > size && strings.HasPrefix(folded, t) && boundary(folded, len(t)) {
			best, size = choice(i), len(t)
		}
	}
	return best
}

// boundary says whether no word goes across position i of s.
func boundary(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	return !word(before) || !word(after)
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
