package rollout

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
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

// item is a finished rollout to be scored. data and episode are there while there is room for them,
// else they are read back from the disk.
type item struct {
	task, index int
	ref         journal.Ref
	data        *abi.Task
	episode     *wire.Episode
	driver      []abi.Score
}

// retained bounds the episodes that wait for a scorer in memory.
const retained = 256

// scoring is an unbounded queue of small items in front of NumCPU workers: a put never blocks.
type scoring struct {
	*engine
	mu     sync.Mutex
	more   sync.Cond
	queue  []item
	held   int // items in queue that hold an episode
	closed bool
	wg     sync.WaitGroup
	single []Scorer // one (task, episode) at a time, and the drivers'
	group  []Scorer
}

func newScoring(e *engine) *scoring {
	s := &scoring{engine: e}
	s.more.L = &s.mu
	for _, sc := range e.Scorers {
		if sc.Kind == plugin.KindGroup {
			s.group = append(s.group, sc)
		} else {
			s.single = append(s.single, sc)
		}
	}
	return s
}

func (s *scoring) start(ctx context.Context) {
	for range runtime.NumCPU() {
		s.wg.Go(func() {
			for {
				it, ok := s.take()
				if !ok {
					return
				}
				if ctx.Err() == nil { // else it stays unscored, and a resume scores it
					s.score(ctx, it)
				}
			}
		})
	}
}

func (s *scoring) put(it item) {
	if len(s.single) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held >= retained && it.driver == nil {
		it.episode, it.data = nil, nil
	} else {
		s.held++
	}
	s.queue = append(s.queue, it)
	s.more.Signal()
}

func (s *scoring) take() (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed {
		s.more.Wait()
	}
	if len(s.queue) == 0 {
		return item{}, false
	}
	it := s.queue[0]
	s.queue[0] = item{}
	s.queue = s.queue[1:]
	if it.episode != nil {
		s.held--
	}
	return it, true
}

// finish waits until everything is scored, then scores the groups.
func (s *scoring) finish(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.more.Broadcast()
	s.mu.Unlock()
	s.wg.Wait()
	if len(s.group) > 0 && ctx.Err() == nil {
		s.scoreGroups(ctx)
	}
}

// score gives one finished rollout to every scorer that has not scored it yet.
func (s *scoring) score(ctx context.Context, it item) {
	task, episode, err := s.load(it)
	if err != nil {
		s.fail(err)
		return
	}
	for i := range s.single {
		sc := &s.single[i]
		if s.Journal.Scored(it.task, it.index, sc.Alias, sc.Name) {
			continue
		}
		line := journal.ScoreLine{Key: task.Key, Index: &it.index, Plugin: sc.Alias, Scorer: sc.Name, Identity: sc.Plugin.ScorerIdentity(sc.Name)}
		if sc.Kind == plugin.KindDriver {
			if it.driver == nil {
				continue // its scores came with the rollout, in an attempt that is over
			}
			line.Scores = scores(driverScores(it.driver, sc.Name))
		} else {
			res, err := sc.Plugin.Score(ctx, s.Request.scoreRequest(sc.Name, task, it.index, View(episode, sc.View)))
			if !s.fill(ctx, &line, res, err) {
				return
			}
		}
		s.write(sc, line)
	}
}

// fill puts a call's result into the line; false when the attempt is over and nothing is to be written.
func (s *scoring) fill(ctx context.Context, line *journal.ScoreLine, res plugin.Result, err error) bool {
	line.Fuel, line.MS = res.Fuel, float64(res.Took)/float64(time.Millisecond)
	if err == nil {
		line.Scores = scores(res.Scores)
		return true
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return false
	}
	line.Failure = failure.Of(err)
	return true
}

func (s *scoring) write(sc *Scorer, line journal.ScoreLine) {
	if err := s.Journal.Score(line); err != nil {
		s.fail(err)
		return
	}
	if line.Failure != nil {
		s.Logger.Warn("scorer failed", slog.String("plugin", sc.Alias), slog.String("task", line.Key), slog.Any("err", line.Failure))
	}
	for _, v := range line.Scores {
		s.Observer.Scored(ScoreKey(sc.Alias, sc.Name, v.Name), v.Value)
	}
}

// load gets what the item no longer holds.
func (s *scoring) load(it item) (*abi.Task, *wire.Episode, error) {
	task, episode := it.data, it.episode
	if task == nil {
		var err error
		if task, err = s.task(it.task); err != nil {
			return nil, nil, err
		}
	}
	if episode == nil {
		line, err := s.Journal.Episode(it.ref)
		if err != nil {
			return nil, nil, err
		}
		if episode, err = wire.ParseEpisode(line); err != nil {
			return nil, nil, err
		}
	}
	return task, episode, nil
}

// scoreGroups scores every task all of whose rollouts are finished.
func (s *scoring) scoreGroups(ctx context.Context) {
	for ordinal := range s.Tasks.Len() {
		refs := make([]journal.Ref, 0, s.Rollouts)
		for index := range s.Rollouts {
			if st := s.Journal.State(ordinal, index); st.Outcome.Finished() {
				refs = append(refs, st.Episode)
			}
		}
		if len(refs) < s.Rollouts || ctx.Err() != nil {
			continue
		}
		if err := s.scoreGroup(ctx, ordinal, refs); err != nil {
			s.fail(err)
			return
		}
	}
}

func (s *scoring) scoreGroup(ctx context.Context, ordinal int, refs []journal.Ref) error {
	var task *abi.Task
	episodes := make([]*wire.Episode, len(refs))
	for i, ref := range refs {
		t, ep, err := s.load(item{task: ordinal, data: task, ref: ref})
		if err != nil {
			return err
		}
		task, episodes[i] = t, ep
	}
	for i := range s.group {
		sc := &s.group[i]
		if s.Journal.ScoredGroup(ordinal, len(refs), sc.Alias, sc.Name) {
			continue
		}
		views := make([]abi.Episode, len(episodes))
		for i, ep := range episodes {
			views[i] = *View(ep, sc.View)
		}
		line := journal.ScoreLine{Key: task.Key, Plugin: sc.Alias, Scorer: sc.Name, Rollouts: len(refs), Identity: sc.Plugin.ScorerIdentity(sc.Name)}
		res, err := sc.Plugin.ScoreGroup(ctx, abi.ScoreGroupRequest{
			Scorer: sc.Name, Task: *task, Episodes: views, Seed: Seed(s.Request.TaskSeed, task.Key, 0),
		})
		if !s.fill(ctx, &line, res, err) {
			return nil
		}
		s.write(sc, line)
	}
	return nil
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

// driverScores picks a driver scorer's own among those that came back from op 3.
func driverScores(all []abi.Score, scorer string) []abi.Score {
	var out []abi.Score
	for _, v := range all {
		switch {
		case v.Name == scorer:
			v.Name = ""
			out = append(out, v)
		case len(v.Name) > len(scorer)+1 && v.Name[:len(scorer)+1] == scorer+".":
			v.Name = v.Name[len(scorer)+1:]
			out = append(out, v)
		}
	}
	return out
}
