// Command numeric is a plugin: a scorer that reads a number out of a completion and compares it with the right
// one, within a tolerance.
//
// It reads thousands separators, fractions, percent, powers of ten, currency and words such as "million"; see
// [number].
package main

import (
	"math"
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

type plugin struct {
	expected, marker, percent string
	abs, rel                  float64
	comma                     bool // the decimal mark
}

func (p *plugin) init(o *sdk.Options) error {
	p.expected = o.String("expected", "target")
	p.marker = o.String("marker", "")
	p.percent = o.String("percent", "either")
	p.abs, p.rel = o.Float("abs_tol", 0), o.Float("rel_tol", 1e-9)
	decimal := o.String("decimal", ".")
	p.comma = decimal == ","
	switch {
	case p.percent != "either" && p.percent != "fraction" && p.percent != "ignore":
		return sdk.NewError("bad_option", "option percent: want either, fraction or ignore, got "+strconv.Quote(p.percent))
	case decimal != "." && decimal != ",":
		return sdk.NewError("bad_option", `option decimal: want "." or ",", got `+strconv.Quote(decimal))
	case !(p.abs >= 0) || !(p.rel >= 0):
		return sdk.NewError("bad_option", "options abs_tol and rel_tol: must not be negative")
	}
	return nil
}

func (p *plugin) correct(r sdk.ScoreRequest) ([]sdk.Score, error) {
	var want []float64
	for _, text := range expect.Texts(r.Task, p.expected) {
		if n, ok := p.whole(text); ok {
			want = append(want, p.readings(n)...)
		}
	}
	if len(want) == 0 {
		return nil, sdk.NewError("no_target", "task "+r.Task.Key+": no number at "+p.expected+" to compare with (option expected)")
	}
	got, ok := p.answer(r.Episode.Completion)
	if !ok {
		s := sdk.Binary(false)
		s.Label = "no_answer"
		return []sdk.Score{s}, nil
	}
	right := false
	for _, w := range want {
		for _, v := range p.readings(got) {
			right = right || math.Abs(v-w) <= max(p.abs, p.rel*math.Abs(w))
		}
	}
	s := sdk.Binary(right)
	s.Answer = got.text
	return []sdk.Score{s}, nil
}

// readings are the numbers that one with a percent sign may be.
func (p *plugin) readings(n number) []float64 {
	switch {
	case !n.percent || p.percent == "ignore":
		return []float64{n.value}
	case p.percent == "fraction":
		return []float64{n.value / 100}
	}
	return []float64{n.value, n.value / 100}
}

// answer is the last number, or the first after the last marker.
func (p *plugin) answer(s string) (out number, ok bool) {
	if p.marker != "" {
		i := strings.LastIndex(s, p.marker)
		if i < 0 {
			return out, false
		}
		s = s[i+len(p.marker):]
	}
	for n := range numbers(s, p.comma) {
		if out, ok = n, true; p.marker != "" {
			return out, ok
		}
	}
	return out, ok
}

// whole is the target's number. It is written as data, so the decimal point is always understood there; where
// text stands around it the last number counts.
func (p *plugin) whole(s string) (out number, ok bool) {
	if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return number{value: f, text: s}, true
	}
	for n := range numbers(s, p.comma) {
		out, ok = n, true
	}
	return out, ok
}
