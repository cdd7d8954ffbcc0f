package rollout

import (
	"context"
	"encoding/json"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

// Scorer is one column of the result: a scorer of a loaded plugin.
type Scorer struct {
	Plugin *plugin.Plugin
	Alias  string // the plugin's, in keys
	Name   string
	Kind   string   // plugin.KindRollout, KindGroup or KindDriver
	View   []string // what of an episode it gets
}

// ScoreKey is how a score is called in summaries: alias.scorer, and .name where the scorer gives several.
func ScoreKey(alias, scorer, name string) string {
	key := alias + "." + scorer
	if name != "" && name != scorer {
		key += "." + name
	}
	return key
}

// line scores one finished rollout. unread says why its episode cannot be read: a failure of the host,
// not of the scorer. The error is that of an ended ctx, and then there is no line: the score is owed.
func (sc *Scorer) line(ctx context.Context, req *Request, task *abi.Task, index int, ep *wire.Episode, unread error) (journal.ScoreLine, error) {
	out := sc.begin(task.Key)
	out.Index = &index
	switch {
	case unread != nil:
		out.Failure = failure.New(failure.Host, "internal", "episode: %v", unread)
	case sc.Kind == plugin.KindDriver:
		driverScores(&out, ep)
	default:
		res, err := sc.Plugin.Score(ctx, req.scoreRequest(sc.Name, task, index, View(ep, sc.View)))
		if err != nil && ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		fill(&out, res, err)
	}
	return out, nil
}

// groupLine scores all finished rollouts of a task together; errors are those of line.
func (sc *Scorer) groupLine(ctx context.Context, req *Request, task *abi.Task, episodes []*wire.Episode, unread error) (journal.ScoreLine, error) {
	out := sc.begin(task.Key)
	out.Rollouts = len(episodes)
	if unread != nil {
		out.Failure = failure.New(failure.Host, "internal", "episode: %v", unread)
		return out, nil
	}
	views := make([]abi.Episode, len(episodes))
	for i, ep := range episodes {
		views[i] = *View(ep, sc.View)
	}
	res, err := sc.Plugin.ScoreGroup(ctx, abi.ScoreGroupRequest{
		Scorer: sc.Name, Task: *task, Episodes: views, Seed: Seed(req.TaskSeed, task.Key, 0),
	})
	if err != nil && ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	fill(&out, res, err)
	return out, nil
}

// begin begins what the scorer says.
func (sc *Scorer) begin(key string) journal.ScoreLine {
	return journal.ScoreLine{Key: key, Plugin: sc.Alias, Scorer: sc.Name, Identity: sc.Plugin.ScorerIdentity(sc.Name)}
}

// fill puts a call's result into the line.
func fill(line *journal.ScoreLine, res plugin.Result, err error) {
	line.Fuel, line.MS = res.Fuel, float64(res.Took)/float64(time.Millisecond)
	if err != nil {
		line.Failure = failure.Of(err)
		return
	}
	line.Scores = scores(res.Scores)
}

// driverScores takes a driver scorer's own number from where the rollout's episode keeps them.
func driverScores(line *journal.ScoreLine, ep *wire.Episode) {
	var all []journal.Score
	if t := ep.Selected(); t != nil {
		if kept := t.Info.Get(infoKey, scoresKey); !kept.IsNil() {
			text, _ := kept.MarshalJSON()  // never an error
			_ = json.Unmarshal(text, &all) // what cannot be read is not there
		}
	}
	for _, v := range all {
		if v.Name == line.Scorer {
			line.Scores = []journal.Score{v}
			return
		}
	}
	line.Failure = failure.New(failure.Plugin, "response", "the rollout gave no score %s", line.Scorer)
}

// scores is the same numbers in the journal's words.
func scores(list []abi.Score) []journal.Score {
	out := make([]journal.Score, len(list))
	for i, v := range list {
		out[i] = journal.Score{
			Name: v.Name, Value: v.Value, Label: v.Label, Explanation: v.Explanation,
			Answer: v.Answer, Metadata: v.Metadata,
		}
	}
	return out
}
