package main

import "strings"

// prose reads an answer by the rules of the package, in their order.
func (o *options) prose(s string) choice {
	if got := o.whole(s); got != none {
		return got
	}
	if got, found := o.said(s); found {
		return got
	}
	if got := o.bracketed(s); got != none {
		return got
	}
	if got := o.only(s); got != none {
		return got
	}
	return o.alone(s)
}

// What one reading may cost: an answer stands near its cue, and after one of the last.
const (
	maxText = 4 << 10 // bytes
	maxCues = 100
)

// said is what follows the last cue that an answer follows.
func (o *options) said(s string) (got choice, found bool) {
	low := strings.ToLower(s)
	if len(low) != len(s) {
		low = s // letters whose case differs in length: cues in small letters only
	}
	at := -1
	for _, cue := range []string{
		"answer is", "answer:", "answer**:", "answer:**", "answer would be", "answer should be", "option is", "choice is", "choice:", "answer to the question is",
		"correct option:", "i choose", "i would choose", "i pick", "i select", "i'd go with", "is option", "is choice", `\boxed{`, "answer =",
	} {
		end := len(low)
		for range maxCues { // its last occurrence that an answer follows
			i := strings.LastIndex(low[:end], cue)
			if i <= at {
				break
			}
			rest := s[i+len(cue):]
			line, _, _ := strings.Cut(strings.TrimLeft(rest[:min(len(rest), maxText)], " \t\r\n*_:"), "\n")
			if c, ok := o.statement(line); ok {
				got, found, at = c, true, i
				break
			}
			end = i
		}
	}
	return got, found
}

// bracketed is the last letter in brackets, or the last that begins a line with one behind it or a period.
func (o *options) bracketed(s string) choice {
	got := none
	for i := 0; i+1 < len(s); i++ {
		c := o.letter(s[i])
		if c == none {
			continue
		}
		open, end := byte('\n'), s[i+1]
		if i > 0 {
			open = s[i-1]
		}
		begins := open == '\n' || open == '*' && strings.HasSuffix(strings.TrimRight("\n"+s[max(0, i-4):i], "*"), "\n")
		switch {
		case open == '(' && end == ')', open == '[' && end == ']', open == '{' && end == '}':
			got = c
		case begins && 'A' <= s[i] && s[i] <= 'Z' && (end == ')' || end == '.' || end == ':') && (i+2 == len(s) || !isWordByte(s[i+2])):
			got = c
		case open == '*' && end == '*' && 'A' <= s[i] && s[i] <= 'Z':
			got = c
		}
	}
	return got
}

func isWordByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c >= 0x80
}

// only is the one option whose text is in s. A text within a longer one that is there does not count.
func (o *options) only(s string) choice {
	folded := strings.ToLower(strings.Join(strings.Fields(s), " "))
	got := none
	for i, t := range o.texts {
		if t == "" || !o.in(folded, t) {
			continue
		}
		if got != none {
			return none
		}
		got = choice(i)
	}
	return got
}

// in says whether t stands in s by itself, not just as a part of a longer option.
func (o *options) in(s, t string) bool {
	for _, longer := range o.texts {
		if len(longer) > len(t) && strings.Contains(longer, t) {
			s = strings.ReplaceAll(s, longer, "\n")
		}
	}
	for at := 0; ; {
		i := strings.Index(s[at:], t)
		if i < 0 {
			return false
		}
		if i += at; boundary(s, i) && boundary(s, i+len(t)) {
			return true
		}
		at = i + 1
	}
}

// alone is the last capital letter that is a word of its own; A and I are words in English, so that they count
// at the end of a sentence only.
func (o *options) alone(s string) choice {
	for i := len(s) - 1; i >= 0; i-- {
		c := o.letter(s[i])
		if c == none || s[i] < 'A' || s[i] > 'Z' {
			continue
		}
		if i > 0 && (isWordByte(s[i-1]) || s[i-1] == '\'' || s[i-1] == '-') || i+1 < len(s) && (isWordByte(s[i+1]) || s[i+1] == '\'' || s[i+1] == '-') {
			continue
		}
		if (s[i] == 'A' || s[i] == 'I') && strings.Trim(s[i+1:min(len(s), i+3)], ".!*\n ") != "" {
			continue
		}
		return c
	}
	return none
}
