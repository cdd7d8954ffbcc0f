// Command conform-go is a plugin that uses every part of the ABI through the SDK, for tests of hosts.
//
// Tasks are plain. How a rollout is driven is said by the task's data field `drive` (rollout.go); how
// the scorer `misbehave` misbehaves by the completion. The scorer `world` gives back what the guest
// can see: options, asset, dataset, clock, random numbers, and how many calls its instance has had.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/wevalr/wevalr/plugins/sdk"
)

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{
		Init:      p.init,
		TaskCount: func() (int, error) { return p.tasks, nil },
		Tasks: func(cursor string, limit int) ([]sdk.Task, string, error) {
			return sdk.Page(cursor, limit, p.tasks, task)
		},
		Rollout:      rollout,
		Scorers:      map[string]sdk.Scorer{"length": length, "misbehave": misbehave, "world": p.world},
		GroupScorers: map[string]sdk.GroupScorer{"spread": spread},
	})
}

func main() {}

type plugin struct {
	tasks    int
	greeting string
	calls    int
}

func (p *plugin) init(o *sdk.Options) error {
	p.tasks, p.greeting = o.Int("tasks", 3), o.String("greeting", "hello")
	if p.greeting == "" {
		return sdk.NewError("bad_option", "option greeting: must not be empty")
	}
	return nil
}

func task(i int) (sdk.Task, error) {
	return sdk.Task{
		Key:      "task-" + strconv.Itoa(i),
		Data:     map[string]any{"prompt": "task " + strconv.Itoa(i), "number": i, "nested": map[string]any{"list": []any{1, 2.5, "x", nil, true}}},
		Target:   "target " + strconv.Itoa(i),
		Choices:  []string{"a", "b"},
		Cluster:  "cluster-" + strconv.Itoa(i%2),
		Group:    "group",
		Metadata: map[string]any{"i": i},
	}, nil
}

// length counts what it was shown, part by part.
func length(r sdk.ScoreRequest) ([]sdk.Score, error) {
	e := r.Episode
	s := sdk.Number(float64(len(e.Completion)))
	s.Label, s.Explanation, s.Answer = "a label", "an explanation", e.Completion
	s.Metadata = map[string]any{
		"messages": len(e.Messages), "info": len(e.Info), "stop_condition": e.StopCondition,
		"errors": len(e.Errors), "seed": r.Seed, "key": r.Task.Key,
	}
	words := sdk.Number(float64(len(strings.Fields(e.Completion))))
	words.Name = "words"
	return []sdk.Score{s, words, {Name: "nothing", Explanation: "skipped"}}, nil
}

func misbehave(r sdk.ScoreRequest) ([]sdk.Score, error) {
	switch r.Episode.Completion {
	case "panic":
		panic("a panic of the plugin")
	case "error":
		return nil, &sdk.Error{Code: "own_code", Message: "an error of the plugin", Retryable: true, Data: map[string]any{"n": 1}}
	case "plain error":
		return nil, errors.New("a plain error")
	case "nan":
		return []sdk.Score{sdk.Number(math.NaN())}, nil
	case "inf":
		return []sdk.Score{sdk.Number(math.Inf(1))}, nil
	case "range":
		return []sdk.Score{sdk.Number(2)}, nil
	case "none":
		return nil, nil
	case "twice":
		return []sdk.Score{sdk.Binary(true), sdk.Binary(false)}, nil
	case "env":
		_, err := (&sdk.Env{}).Start(sdk.EnvRequest{})
		return nil, err
	case "huge":
		return []sdk.Score{{Explanation: strings.Repeat("x", 9<<20)}}, nil
	}
	return []sdk.Score{sdk.Binary(true)}, nil
}

func (p *plugin) world(sdk.ScoreRequest) ([]sdk.Score, error) {
	p.calls++
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	asset, err := sdk.Asset("data/asset.txt")
	if err != nil {
		asset = []byte(err.Error())
	}
	hello, err := fs.ReadFile(sdk.Dataset("dataset"), "hello.txt")
	if err != nil {
		hello = []byte("none")
	}
	begin := time.Now()
	time.Sleep(time.Millisecond)
	sdk.Log(sdk.LevelInfo, "world", "calls", p.calls)
	s := sdk.Number(float64(p.calls))
	s.Metadata = map[string]any{
		"greeting": p.greeting, "asset": string(asset), "dataset": string(hello),
		"now": begin.Unix(), "slept": time.Since(begin) >= time.Millisecond, "random": hex.EncodeToString(random),
	}
	return []sdk.Score{s}, nil
}

// spread is the difference between the longest and the shortest completion.
func spread(r sdk.GroupRequest) ([]sdk.Score, error) {
	if len(r.Episodes) == 0 {
		return []sdk.Score{sdk.Skipped("no episodes")}, nil
	}
	shortest, longest := math.MaxInt, 0
	for _, e := range r.Episodes {
		shortest, longest = min(shortest, len(e.Completion)), max(longest, len(e.Completion))
	}
	return []sdk.Score{sdk.Number(float64(longest - shortest))}, nil
}
