// Command arith is a plugin: sums of two numbers as tasks, and a scorer that reads the answer out of a
// completion.
//
// Nothing is read and nothing random: task i is the same whatever the number of tasks, so a larger set
// begins with a smaller one.
package main

import (
	"strconv"

	"github.com/wevalr/wevalr/plugins/sdk"
)

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{
		Init:      p.init,
		TaskCount: func() (int, error) { return p.tasks, nil },
		Tasks: func(cursor string, limit int) ([]sdk.Task, string, error) {
			return sdk.Page(cursor, limit, p.tasks, p.task)
		},
		Scorers: map[string]sdk.Scorer{"correct": correct},
	})
}

func main() {}

type plugin struct{ tasks, max int }

func (p *plugin) init(o *sdk.Options) error {
	p.tasks, p.max = o.Int("tasks", 50), o.Int("max", 99)
	switch {
	case p.tasks < 0:
		return sdk.NewError("bad_option", "option tasks: must not be negative")
	case p.max < 1 || p.max > 1<<31:
		return sdk.NewError("bad_option", "option max: must be between 1 and 2147483648")
	}
	return nil
}

func (p *plugin) task(i int) (sdk.Task, error) {
	r := mix(uint64(i))
	n := uint64(p.max) + 1
	a, b := int64(r%n), int64(mix(r)%n)
	return sdk.Task{
		Key:    "arith-" + strconv.Itoa(i),
		Data:   map[string]any{"prompt": "What is " + strconv.FormatInt(a, 10) + " + " + strconv.FormatInt(b, 10) + "?"},
		Target: strconv.FormatInt(a+b, 10),
	}, nil
}

// mix is splitmix64 (https://prng.di.unimi.it/splitmix64.c): one well-mixed number from another.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// correct compares the last number of the completion with the target.
func correct(r sdk.ScoreRequest) ([]sdk.Score, error) {
	want, ok := r.Task.Target.(string)
	if !ok {
		return nil, sdk.NewError("no_target", "task "+r.Task.Key+": the target is not the text of a number")
	}
	got := lastNumber(r.Episode.Completion)
	s := sdk.Binary(got != "" && got == want)
	s.Answer = got
	if got == "" {
		s.Label = "no_answer"
	}
	return []sdk.Score{s}, nil
}
