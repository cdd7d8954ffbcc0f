package main

import (
	"math"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

type options = map[string]any

func TestNumbers(t *testing.T) {
	for s, want := range map[string][]float64{
		"":                                   nil,
		"none":                               nil,
		"5":                                  {5},
		"so 5.":                              {5},
		"5, 6":                               {5, 6},
		"-5 − 6 (−7) --8 a-9 10-11":          {-5, 6, -7, 8, 9, 10, 11},
		".5 and -.25":                        {.5, -.25},
		"1,234,567.89":                       {1234567.89},
		"12,34":                              {12, 34},
		"1,2345":                             {1, 2345},
		"1_000 1'000 1\u00a0000 1\u202f000":  {1000, 1000, 1000, 1000},
		"1{,}234 and 1\\,234":                {1234, 1234},
		"1,000,00":                           {1000, 0},
		"3/4":                                {.75},
		"-3/4":                               {-.75},
		"1 1/2 cups":                         {1.5},
		"2 3/2":                              {2, 1.5},
		"½ 1½ 2 ¾ ⅑":                         {.5, 1.5, 2.75, 1. / 9},
		"\\frac{3}{4} \\dfrac{-1}{2.5}":      {.75, -.4},
		"\\frac{a}{2}":                       {2},
		"\\boxed{42}":                        {42},
		"1/2/2024 and 7":                     {7},
		"5/0 and 7":                          {7},
		"1.5e-3 2E5 3e 4ex":                  {.0015, 2e5, 3, 4},
		"1.5 × 10^-3, 2*10^{3} 3x10^4":       {.0015, 2000, 3e4},
		"6.02 \\times 10^{23} 10⁻³ 2^10":     {6.02e23, 1e-3, 1024},
		"5 x 6":                              {5, 6},
		"2**3 and **7**":                     {8, 7},
		"$5 -$6 $-7 €8 9 € \\$10 -\\$11":     {5, -6, -7, 8, 9, 10, -11},
		"5% 6 % 7\\% 8 percent 9 percentage": {5, 6, 7, 8, 9},
		"1.5 million 2 Billion 3 millions":   {1.5e6, 2e9, 3},
		"x2 H2O v1.2.3 a_1 1.2.3 2nd 5km":    {2, 5},
		"1e999 7":                            {7},
		"٣ ３ 7":                              {7}, // ASCII digits only
		"10:30":                              {10, 30},
	} {
		var got []float64
		for n := range numbers(s, false) {
			got = append(got, n.value)
		}
		ok := len(got) == len(want)
		for i := range got {
			ok = ok && math.Abs(got[i]-want[i]) <= 1e-15*math.Abs(want[i])
		}
		if !ok {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
	for s, want := range map[string]float64{"1.234,5": 1234.5, "0,5": .5, "1.234": 1234, "12,34": 12.34} {
		for n := range numbers(s, true) {
			if n.value != want {
				t.Errorf("%q with a decimal comma: got %v, want %v", s, n.value, want)
			}
		}
	}
}

func TestCorrect(t *testing.T) {
	for _, c := range []struct {
		options    options
		target     any
		completion string
		value      float64
		answer     string
	}{
		{nil, "42", "It is 41. No, 42.", 1, "42"},
		{nil, int64(42), "It is 42, not 41", 0, "41"},
		{nil, 2.5, "2 1/2", 1, "2 1/2"},
		{nil, "$1,234", "1234.00", 1, "1234.00"},
		{nil, "-3", "the answer is −3", 1, "-3"},
		{nil, "0.1", "1e-1", 1, "1e-1"},
		{nil, "1/3", "0.3333", 0, "0.3333"},
		{options{"abs_tol": 0.001}, "1/3", "0.3333", 1, "0.3333"},
		{options{"rel_tol": 0.01}, "200", "201.9", 1, "201.9"},
		{options{"rel_tol": 0.01}, "200", "202.1", 0, "202.1"},
		{options{"rel_tol": 0.0}, 0.3, "0.30000000000000004", 0, "0.30000000000000004"},
		{nil, 0.3, "0.30000000000000004", 1, "0.30000000000000004"},
		{nil, int64(0), "0.0", 1, "0.0"},
		{nil, int64(50), "50%", 1, "50%"},
		{nil, 0.5, "50 %", 1, "50 %"},
		{nil, "50%", "0.5", 1, "0.5"},
		{options{"percent": "fraction"}, int64(50), "50%", 0, "50%"},
		{options{"percent": "fraction"}, "50%", "0.5", 1, "0.5"},
		{options{"percent": "ignore"}, 0.5, "50%", 0, "50%"},
		{options{"percent": "ignore"}, "50%", "50", 1, "50"},
		{options{"marker": "Answer:"}, "7", "Answer: 5\nAnswer: $7 (of 9)", 1, "7"},
		{options{"marker": "Answer:"}, "7", "It is 7", 0, ""},
		{options{"decimal": ","}, 1234.5, "1.234,5", 1, "1.234,5"},
		{options{"expected": "data.ok"}, nil, "8", 1, "8"},
		{options{"expected": "data.ok"}, nil, "9", 0, "9"},
		{nil, "7", "none", 0, ""},
		{nil, "7", "", 0, ""},
	} {
		task := abi.Task{Key: "k", Target: c.target, Data: map[string]any{"ok": []any{int64(7), "about 8", nil}}}
		got, err := sdktest.New(t, sdktest.Host{Options: c.options}).Score("correct", task, abi.Episode{Completion: c.completion})
		if err != nil || len(got) != 1 || *got[0].Value != c.value || got[0].Answer != c.answer || (got[0].Label == "no_answer") != (c.answer == "") {
			t.Errorf("%v %v %q: got %+v, %v; want %v %q", c.options, c.target, c.completion, got, err, c.value, c.answer)
		}
	}
}

func TestCorrect_Refusals(t *testing.T) {
	for _, target := range []any{nil, "", "none", true, "NaN", "Inf", []any{}} {
		if _, err := sdktest.New(t, sdktest.Host{}).Score("correct", abi.Task{Key: "k", Target: target}, abi.Episode{Completion: "1"}); err == nil {
			t.Errorf("target %v: got no error", target)
		}
	}
	for _, o := range []options{{"percent": "half"}, {"decimal": ";"}, {"abs_tol": -1.0}, {"rel_tol": -1.0}, {"rel_tol": math.NaN()}} {
		if _, err := sdktest.New(t, sdktest.Host{Options: o}).Init(); err == nil {
			t.Errorf("%v: got no error", o)
		}
	}
}

func TestCorrect_Hostile(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{})
	texts := []string{"\xff5\xff", "5\xe2", "1/", "\\", "\\frac", "\\frac{", "\\frac{1}{0}", "-", "$", "1e", "1e+", "^", "1^", "1^{", "10⁻", "1 "}
	for _, unit := range []string{"1", "1,", "111,", "1.", "1/", "1e", "-", "$", "\\frac{", "x", "½", "1^", "⁰", "1 1", "\xff", "1 ×", "9e9"} {
		texts = append(texts, strings.Repeat(unit, 200_000/len(unit)))
	}
	for _, s := range texts {
		if got, err := p.Score("correct", abi.Task{Key: "k", Target: "1"}, abi.Episode{Completion: s}); err != nil || len(got) != 1 {
			t.Errorf("%.20q: got %v, %v", s, got, err)
		}
	}
}
