package rollout

import (
	"context"
	"encoding/json"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

// scoreGroups scores every task all of whose rollouts are finished. A group with a hole is not scored:
// a number over fewer rollouts would be another number.
func (s *scoring) scoreGroups(ctx context.Context) {
	var g errgroup.Group
	g.SetLimit(runtime.NumCPU())
	for ordinal := range s.Tasks.Len() {
		if ctx.Err() != nil {
			break
		}
		refs, owed := s.groupOf(ordinal)
		if len(owed) == 0 {
			continue
		}
		g.Go(func() error {
			if err := s.scoreGroup(ctx, ordinal, refs, owed); err != nil {
				s.fail(err)
			}
			return nil
		})
	}
	_ = g.Wait() // errors end the attempt
}

// groupOf gives a task's episodes and the scorers that owe it a score; no scorers where the group is
// not whole.
func (s *scoring) groupOf(ordinal int) (refs []journal.Ref, owed []*Scorer) {
	for index := range s.Rollouts {
		st := s.Journal.State(ordinal, index)
		if !st.Outcome.Finished() {
			return nil, nil
		}
		refs = append(refs, st.Episode)
	}
	for i := range s.group {
		if !s.Journal.ScoredGroup(ordinal, len(refs), s.group[i].Alias, s.group[i].Name) {
			owed = append(owed, &s.group[i])
		}
	}
	return refs, owed
}

func (s *scoring) scoreGroup(ctx context.Context, ordinal int, refs []journal.Ref, owed []*Scorer) error {
	task, _, err := s.task(ordinal)
	if err != nil {
		return err
	}
	episodes := make([]*wire.Episode, len(refs))
	var unread error
	for i, ref := range refs {
		line, err := s.Journal.Episode(ref)
		if err != nil {
			return err
		}
		if episodes[i], err = wire.ParseEpisode(line); err != nil {
			unread = err
		}
	}
	for _, sc := range owed {
		out := s.begin(sc, task.Key)
		out.Rollouts = len(refs)
		if unread != nil {
			out.Failure = failure.New(failure.Host, "internal", "episode: %v", unread)
			s.write(sc, out)
			continue
		}
		views := make([]abi.Episode, len(episodes))
		for i, ep := range episodes {
			views[i] = *View(ep, sc.View)
		}
		res, err := sc.Plugin.ScoreGroup(ctx, abi.ScoreGroupRequest{
			Scorer: sc.Name, Task: *task, Episodes: views, Seed: Seed(s.Request.TaskSeed, task.Key, 0),
		})
		if err != nil && ctx.Err() != nil {
			return nil //nolint:nilerr // the attempt is over, and the score is owed
		}
		fill(&out, res, err)
		s.write(sc, out)
	}
	return nil
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
