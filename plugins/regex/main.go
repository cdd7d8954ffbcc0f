// Command regex is a plugin: a scorer by a regular expression, which either just has to match, or finds the
// answer that is compared with the expected text.
package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wevalr/wevalr/plugins/internal/expect"
	"github.com/wevalr/wevalr/plugins/sdk"
)

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{Init: p.init, Scorers: map[string]sdk.Scorer{"match": p.match}})
}

func main() {}

// maxMatches bounds what looking for the last match may cost. It is far more than an answer needs.
const maxMatches = 1 << 17

type plugin struct {
	re       *regexp.Regexp
	group    int
	expected string
	first    bool
}

func (p *plugin) init(o *sdk.Options) error {
	pattern, group := o.String("pattern", ""), o.String("group", "")
	flags, which := o.String("flags", ""), o.String("which", "last")
	p.expected = o.String("expected", "")
	switch {
	case pattern == "":
		return bad("pattern", "must be set")
	case strings.Trim(flags, "imsU") != "":
		return bad("flags", "knows i, m, s and U, not "+strconv.Quote(flags))
	case which != "last" && which != "first":
		return bad("which", "want last or first, got "+strconv.Quote(which))
	}
	p.first = which == "first"
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	var err error
	if p.re, err = regexp.Compile(pattern); err != nil {
		return bad("pattern", err.Error())
	}
	p.group, err = groupOf(p.re, group)
	return err
}

func bad(option, what string) error {
	return sdk.NewError("bad_option", "option "+option+": "+what)
}

// groupOf is the number of the group with the answer.
func groupOf(re *regexp.Regexp, name string) (int, error) {
	if name == "" {
		return min(1, re.NumSubexp()), nil
	}
	if i := re.SubexpIndex(name); i >= 0 {
		return i, nil
	}
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i > re.NumSubexp() {
		return 0, bad("group", "the pattern has no group "+strconv.Quote(name))
	}
	return i, nil
}

func (p *plugin) match(r sdk.ScoreRequest) ([]sdk.Score, error) {
	var expected []string
	if p.expected != "" {
		if expected = expect.Texts(r.Task, p.expected); len(expected) == 0 {
			return nil, sdk.NewError("no_target", "task "+r.Task.Key+": nothing at "+p.expected+" to compare with (option expected)")
		}
	}
	limit := maxMatches + 1
	if p.first || p.expected == "" {
		limit = 1
	}
	all := p.re.FindAllStringSubmatchIndex(r.Episode.Completion, limit)
	switch len(all) {
	case 0:
		s := sdk.Binary(false)
		s.Label = "no_answer"
		return []sdk.Score{s}, nil
	case maxMatches + 1:
		return []sdk.Score{sdk.Skipped("the pattern matches more than " + strconv.Itoa(maxMatches) + " times")}, nil
	}
	answer := ""
	if at := all[len(all)-1][2*p.group:]; at[0] >= 0 { // else the group took no part in the match
		answer = r.Episode.Completion[at[0]:at[1]]
	}
	s := sdk.Binary(p.expected == "" || slices.ContainsFunc(expected, func(e string) bool {
		return strings.TrimSpace(e) == strings.TrimSpace(answer)
	}))
	s.Answer = answer
	return []sdk.Score{s}, nil
}
