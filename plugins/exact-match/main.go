// Command exact-match is a plugin: a scorer that compares a completion, or what a regular expression
// finds in it, with the expected text.
package main

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/wevalr/wevalr/plugins/internal/expect"
	"github.com/wevalr/wevalr/plugins/sdk"
)

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{Init: p.init, Scorers: map[string]sdk.Scorer{"match": p.match}})
}

func main() {}

type plugin struct {
	expected                       string
	foldCase, foldSpace, dropPunct bool
	extract                        *regexp.Regexp
}

func (p *plugin) init(o *sdk.Options) error {
	p.expected = o.String("expected", "target")
	p.foldCase = o.Bool("ignore_case", false)
	p.foldSpace = o.Bool("ignore_space", false)
	p.dropPunct = o.Bool("ignore_punctuation", false)
	p.extract = nil
	if pattern := o.String("extract", ""); pattern != "" {
		var err error
		if p.extract, err = regexp.Compile(pattern); err != nil {
			return sdk.NewError("bad_option", "option extract: "+err.Error())
		}
	}
	return nil
}

func (p *plugin) match(r sdk.ScoreRequest) ([]sdk.Score, error) {
	expected := expect.Texts(r.Task, p.expected)
	if len(expected) == 0 {
		return nil, sdk.NewError("no_target", "task "+r.Task.Key+": nothing at "+p.expected+" to compare with (option expected)")
	}
	answer, found := r.Episode.Completion, true
	if p.extract != nil {
		answer, found = lastMatch(p.extract, answer)
	}
	if !found {
		s := sdk.Binary(false)
		s.Label = "no_answer"
		return []sdk.Score{s}, nil
	}
	right := false
	for _, e := range expected {
		right = right || p.normal(answer) == p.normal(e)
	}
	s := sdk.Binary(right)
	s.Answer = answer
	return []sdk.Score{s}, nil
}

// lastMatch is the last match of re in s: its first group if it has one, else all of it.
func lastMatch(re *regexp.Regexp, s string) (string, bool) {
	all := re.FindAllStringSubmatchIndex(s, -1)
	if len(all) == 0 {
		return "", false
	}
	at := all[len(all)-1]
	if len(at) > 2 {
		at = at[2:]
	}
	if at[0] < 0 {
		return "", true // the group took no part in the match
	}
	return s[at[0]:at[1]], true
}

// normal drops what the options say does not count.
func (p *plugin) normal(s string) string {
	if p.dropPunct {
		s = strings.Map(func(r rune) rune {
			if unicode.IsPunct(r) || r < unicode.MaxASCII && unicode.IsSymbol(r) {
				return -1
			}
			return r
		}, s)
	}
	if p.foldCase {
		s = strings.ToLower(s)
	}
	if p.foldSpace {
		s = strings.Join(strings.Fields(s), " ")
	}
	return s
}
