// Command multiple-choice is a plugin: a scorer that reads a letter, or an option's text, out of prose.
//
// The rules, of which the first that finds something decides:
//
//  1. All of the completion is the answer: "B", "(b)", "B) Paris", "**Paris**".
//  2. It says so: what follows the last "answer is", "answer:", "correct option is", \boxed{ and the like.
//  3. A letter in brackets: the last "(B)", or a line that begins with "B)" or "B.".
//  4. Just one of the options' texts is in it.
//  5. A letter by itself: the last one, but "A" and "I" only where they are not words.
//
// Two answers at one place ("(A) or (B)") are none. No answer is wrong, and labelled no_answer.
package main

import (
	"strconv"
	"strings"

	"github.com/wevalr/wevalr/plugins/internal/expect"
	"github.com/wevalr/wevalr/plugins/sdk"
)

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{Init: p.init, Scorers: map[string]sdk.Scorer{"correct": p.correct}})
}

func main() {}

type plugin struct{ expected, choices, marker string }

func (p *plugin) init(o *sdk.Options) error {
	p.expected = o.String("expected", "target")
	p.choices = o.String("choices", "choices")
	p.marker = o.String("marker", "")
	return nil
}

// maxChoices is how many letters there are.
const maxChoices = 26

func (p *plugin) correct(r sdk.ScoreRequest) ([]sdk.Score, error) {
	texts := expect.Texts(r.Task, p.choices)
	if len(texts) > maxChoices {
		return nil, sdk.NewError("bad_task", "task "+r.Task.Key+": more than "+strconv.Itoa(maxChoices)+" choices")
	}
	o := newOptions(texts)
	want := o.target(expect.At(r.Task, p.expected))
	if want == none {
		return nil, sdk.NewError("no_target", "task "+r.Task.Key+": nothing at "+p.expected+" that is a letter, an option's text or its position (option expected)")
	}
	got := p.read(o, r.Episode.Completion)
	s := sdk.Binary(got == want)
	if got == none {
		s.Label = "no_answer"
	} else {
		s.Answer = got.String()
	}
	return []sdk.Score{s}, nil
}

func (p *plugin) read(o *options, s string) choice {
	if p.marker == "" {
		return o.prose(s)
	}
	i := strings.LastIndex(s, p.marker)
	if i < 0 {
		return none
	}
	line, _, _ := strings.Cut(s[i+len(p.marker):], "\n")
	got, _ := o.statement(line)
	return got
}

// choice is the position of an option.
type choice int

const none choice = -1

func (c choice) String() string { return string(rune('A' + c)) }

// target is the choice that a task says is right.
func (o *options) target(v any) choice {
	switch v := v.(type) {
	case int64:
		if v >= 0 && v < int64(o.letters) {
			return choice(v)
		}
	case float64:
		if v >= 0 && v < float64(o.letters) && v == float64(int(v)) {
			return choice(v)
		}
	case bool:
		return o.whole(strconv.FormatBool(v))
	case string:
		return o.whole(v)
	}
	return none
}
