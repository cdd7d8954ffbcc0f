package main

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentences are those of nltk's Punkt tokenizer (Kiss and Strunk 2006, Unsupervised Multilingual Sentence
// Boundary Detection, Computational Linguistics 32:485): where a break may be, how the words around it are
// cut, and the decision are its rules. Its trained tables of 20,000 English words are not here: see model.go.

const (
	sentenceEnds = ".?!"
	closing      = `?!)";}]*:@'({[` // Punkt's "non-word" characters
	notWordStart = "(\"`{[:;&#*@)}]-,"
)

// countSentences is how many sentences Punkt finds.
func countSentences(s string) int {
	m := newModel(s)
	n := counter{}
	last := 0
	for c := range chunks(s) {
		end := candidate(s, c)
		if end < 0 {
			continue
		}
		// The next word stands behind white space, or it is the punctuation at hand.
		next, nextEnd := c.next, c.nextEnd
		if end < c.end {
			next, nextEnd = end, end+1
		}
		m.outline = beginsLine(s[:c.begin])
		if m.breaks(s[c.begin:end], s[next:nextEnd]) {
			n.add(s[last:end])
			last = next
		}
	}
	n.add(s[last:])
	return n.sum()
}

// beginsLine says whether nothing but markup stands before the end of s in its line.
func beginsLine(s string) bool {
	return strings.HasSuffix("\n"+strings.TrimRight(s[max(0, len(s)-64):], " \t*#>_-"), "\n")
}

// span is a run without white space, with the one behind it.
type span struct{ begin, end, next, nextEnd int }

func chunks(s string) iter.Seq[span] {
	return func(yield func(span) bool) {
		c := span{}
		c.next, c.nextEnd = run(s, 0)
		for c.nextEnd > c.next {
			c.begin, c.end = c.next, c.nextEnd
			c.next, c.nextEnd = run(s, c.end)
			if !yield(c) {
				return
			}
		}
	}
}

// run is where the first run without white space begins and ends, from at on.
func run(s string, at int) (begin, end int) {
	begin = len(s) - len(strings.TrimLeftFunc(s[at:], space))
	if i := strings.IndexFunc(s[begin:], space); i >= 0 {
		return begin, begin + i
	}
	return begin, len(s)
}

// candidate is where the last possible end of a sentence in a run stands (behind the character), -1 if there
// is none: before other punctuation, or at the run's end when another run follows.
func candidate(s string, c span) int {
	for i := c.end - 1; i >= c.begin; i-- {
		if strings.IndexByte(sentenceEnds, s[i]) < 0 {
			continue
		}
		if i+1 < c.end && strings.IndexByte(closing, s[i+1]) >= 0 || i+1 == c.end && c.nextEnd > c.next {
			return i + 1
		}
	}
	return -1
}

// counter counts the pieces between breaks, when closing punctuation at a piece's beginning goes to the one
// before.
type counter struct {
	n    int
	last string // the piece before, without what went elsewhere
	any  bool
}

func (c *counter) add(s string) {
	cut := 0
	if c.any {
		cut = closers(s)
	}
	if c.last != "" || cut > 0 {
		c.n++
	}
	c.last, c.any = s[cut:], true
}

func (c *counter) sum() int {
	if c.last != "" {
		return c.n + 1
	}
	return c.n
}

// closers is how long ["')\]}]+?(?:\s+|(?=--)|$) is at the beginning of s, 0 if it is not there.
func closers(s string) int {
	n := len(s) - len(strings.TrimLeft(s, `"')]}`))
	if n == 0 {
		return 0
	}
	rest := strings.TrimLeftFunc(s[n:], space)
	if len(rest) < len(s)-n || rest == "" || strings.HasPrefix(rest, "--") {
		return len(s) - len(rest)
	}
	return 0
}

// token is a word of Punkt's.
type token struct {
	text             string
	kind             string // in small letters; all numbers are one
	ends, abbr, dots bool   // a sentence's end, an abbreviation, an ellipsis
}

const number = "##number##"

func (t *token) withoutPeriod() string {
	if len(t.kind) > 1 {
		return strings.TrimSuffix(t.kind, ".")
	}
	return t.kind
}

// final is the kind without a period that ends a sentence.
func (t *token) final() string {
	if t.ends {
		return t.withoutPeriod()
	}
	return t.kind
}

func (t *token) first() rune {
	r, _ := utf8.DecodeRuneInString(t.text)
	return r
}

// initial is one letter with a period.
func (t *token) initial() bool {
	r, n := utf8.DecodeRuneInString(t.text)
	return t.text[n:] == "." && wordRune(r) && !unicode.Is(unicode.Nd, r)
}

// breaks says whether a sentence ends in word, when next follows.
func (m *model) breaks(word, next string) bool {
	tokens := m.tokens(m.tokens(nil, word), next)
	for i := range tokens[:max(0, len(tokens)-1)] {
		m.decide(&tokens[i], &tokens[i+1])
		if tokens[i].ends {
			return true
		}
	}
	return false
}

// tokens cuts a run into words and marks what their form alone tells.
func (m *model) tokens(out []token, s string) []token {
	for s != "" {
		n := wordLen(s)
		t := token{text: s[:n], kind: strings.ToLower(s[:n])}
		s = s[n:]
		if isNumber(t.kind) {
			t.kind = number
		}
		switch {
		case len(t.text) == 1 && strings.Contains(sentenceEnds, t.text):
			t.ends = true
		case len(t.text) > 1 && strings.Trim(t.text, ".") == "":
			t.dots = true
		case strings.HasSuffix(t.text, ".") && !strings.HasSuffix(t.text, ".."):
			if t.abbr = m.abbreviation(strings.ToLower(t.text[:len(t.text)-1])); !t.abbr {
				t.ends = true
			}
		}
		out = append(out, t)
	}
	return out
}

// wordLen is the length of the word at the beginning of s, which has no white space.
func wordLen(s string) int {
	if n := multiple(s); n > 0 {
		return n
	}
	_, n := utf8.DecodeRuneInString(s)
	if strings.IndexByte(notWordStart, s[0]) >= 0 {
		return n
	}
	for n < len(s) && !wordEnd(s[n:]) {
		_, size := utf8.DecodeRuneInString(s[n:])
		n += size
	}
	return n
}

// multiple is the length of -- or .. and longer at the beginning of s.
func multiple(s string) int {
	if len(s) < 2 || s[0] != s[1] || s[0] != '-' && s[0] != '.' {
		return 0
	}
	return len(s) - len(strings.TrimLeft(s, s[:1]))
}

func wordEnd(s string) bool {
	if strings.IndexByte(closing, s[0]) >= 0 || multiple(s) > 0 {
		return true
	}
	return s[0] == ',' && (len(s) == 1 || strings.IndexByte(closing, s[1]) >= 0 || multiple(s[1:]) > 0)
}

// isNumber is ^-?[\.,]?\d[\d,\.-]*\.?$.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if s != "" && (s[0] == '.' || s[0] == ',') {
		s = s[1:]
	}
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsDigit(r) && strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsDigit(r) && r != ',' && r != '.' && r != '-'
	}) < 0
}

// decide is the second pass: what two words tell together.
func (m *model) decide(t, next *token) {
	if !strings.HasSuffix(t.text, ".") {
		return
	}
	word := next.final()
	if t.withoutPeriod() == number && m.afterNumber.has(word) {
		t.ends = false
		return
	}
	capital, initial := upperRune(next.first()), t.initial()
	// A capital starts a sentence where the word is known in small letters and not as a part of names.
	starts := capital && (m.common.has(word) || t.dots && m.inText(word)) && !m.inNames.has(word)
	if (t.abbr || t.dots) && !initial {
		if starts || capital && m.starters.has(word) {
			t.ends = true
			return
		}
	}
	switch {
	case !initial && t.withoutPeriod() != number:
	case lowerRune(next.first()), len(next.text) == 1 && strings.Contains(";:,.!?", next.text):
		t.ends = false
	case initial && capital && !m.small(word):
		t.ends = false
	}
}
