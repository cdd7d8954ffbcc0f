package host

import (
	"bytes"
	"fmt"
	"sort"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/rollout"
	"github.com/wevalr/wevalr/host/stats"
)

// summarize reduces the run as it stands on disk to its summary. Nothing is remembered from the
// attempt itself: the same files give the same numbers.
func (a *attempt) summarize(end *ending) (*journal.Summary, error) {
	r := a.cfg.Tasks.NumRollouts
	s := &journal.Summary{
		Counts: a.run.Counts(r), Failures: a.run.Failures(r), Usage: a.run.Usage(),
		Scores: map[string]stats.Estimate{}, Rewards: map[string]stats.Estimate{},
		DurationS: time.Since(a.start).Seconds(),
	}
	s.Server.Generations = a.run.Generations()
	for _, id := range a.plugins.identities() {
		s.Plugins = append(s.Plugins, journal.SummaryPlugin{Name: id.Alias, Plugin: id.Plugin, Version: id.Version, SHA256: id.SHA256, ABI: id.ABI})
	}
	if err := a.estimateScores(s); err != nil {
		return nil, err
	}
	if err := a.estimateRewards(s); err != nil {
		return nil, err
	}
	s.ExitCode = a.exitCode(s, end)
	return s, nil
}

// complete reads back what WriteSummary filled in.
func (a *attempt) complete(s *journal.Summary) (*journal.Summary, error) {
	written, err := a.run.Summary()
	if err != nil {
		s.Run = journal.SummaryRun{ID: a.run.ID(), Name: a.cfg.Name, Dir: a.run.Dir(), Attempts: a.run.Attempt()}
		return s, nil //nolint:nilerr // a disk that took no summary is reported by whoever wrote it
	}
	return written, nil
}

// column is one line of the result: an accumulator and how many values a task should have.
type column struct {
	acc     *stats.Accumulator
	perTask int
}

// estimateScores reads scores.jsonl, a line at a time.
func (a *attempt) estimateScores(s *journal.Summary) error {
	columns := map[string]column{}
	infos := map[[2]string]plugin.Scorer{}
	for i := range a.plugins.scorers {
		sc := &a.plugins.scorers[i]
		infos[[2]string{sc.Alias, sc.Name}] = scorerInfo(sc)
		columns[rollout.ScoreKey(sc.Alias, sc.Name, "")] = a.column(scorerInfo(sc))
	}
	failed := map[string]*journal.FailureCount{}
	for line, err := range a.run.Scores() {
		if err != nil {
			return err
		}
		info, ours := infos[[2]string{line.Plugin, line.Scorer}]
		task, known := a.tasks.Ordinal(line.Key)
		if !ours || !known {
			continue
		}
		countFailure(failed, &line)
		for _, v := range line.Scores {
			key := rollout.ScoreKey(line.Plugin, line.Scorer, v.Name)
			c, ok := columns[key]
			if !ok {
				c = a.column(info)
				columns[key] = c
			}
			if v.Value == nil {
				c.acc.Null(task)
			} else if err := c.acc.Add(task, *v.Value); err != nil {
				return fmt.Errorf("scores.jsonl: %s of %s: %w", key, line.Key, err)
			}
		}
	}
	dropUnused(columns, infos, s.Planned)
	if err := a.cluster(columns); err != nil {
		return err
	}
	for key, c := range columns {
		s.Scores[key] = c.acc.Estimate(a.tasks.Len(), c.perTask)
	}
	for _, f := range failed {
		s.Failures = append(s.Failures, *f)
	}
	sort.SliceStable(s.Failures, func(i, j int) bool { return s.Failures[i].Count > s.Failures[j].Count })
	return nil
}

func (a *attempt) column(info plugin.Scorer) column {
	opt := stats.Options{Binary: info.Binary}
	if len(info.Range) == 2 {
		opt.Range = &stats.Interval{info.Range[0], info.Range[1]}
	}
	c := column{acc: stats.New(opt), perTask: a.cfg.Tasks.NumRollouts}
	if info.Kind == plugin.KindGroup {
		c.perTask = 1
	}
	return c
}

// dropUnused takes away the column of a scorer that gives only named scores: it has nothing in it while
// alias.scorer.name has.
func dropUnused(columns map[string]column, infos map[[2]string]plugin.Scorer, planned int) {
	for id := range infos {
		key := rollout.ScoreKey(id[0], id[1], "")
		if e := columns[key].acc.Estimate(planned, 1); e.Scored+e.Null > 0 {
			continue
		}
		for other := range columns {
			if len(other) > len(key) && other[:len(key)+1] == key+"." {
				delete(columns, key)
				break
			}
		}
	}
}

// cluster tells the accumulators which tasks belong together.
func (a *attempt) cluster(columns map[string]column) error {
	for i := range a.tasks.Len() {
		raw, _, err := a.tasks.Task(i)
		if err != nil {
			return err
		}
		if !bytes.Contains(raw, []byte(`"cluster":`)) {
			continue
		}
		task, err := rollout.DecodeTask(raw)
		if err != nil {
			return err
		}
		if task.Cluster == "" {
			continue
		}
		for _, c := range columns {
			c.acc.Cluster(i, task.Cluster)
		}
	}
	return nil
}

// estimateRewards reads the journal's finish lines: the env-server's own numbers.
func (a *attempt) estimateRewards(s *journal.Summary) error {
	if !a.run.Rewarded() {
		return nil
	}
	columns := map[string]column{}
	for f, err := range a.run.Finishes() {
		if err != nil {
			return err
		}
		if !f.Outcome.Finished() || len(f.Rewards) == 0 || f.Index >= a.cfg.Tasks.NumRollouts {
			continue
		}
		task, known := a.tasks.Ordinal(f.Key)
		if !known {
			continue
		}
		for name, v := range f.Rewards {
			c, ok := columns[name]
			if !ok {
				c = a.column(plugin.Scorer{})
				columns[name] = c
			}
			if v == nil {
				c.acc.Null(task)
			} else if err := c.acc.Add(task, *v); err != nil {
				return fmt.Errorf("%s: reward %s of %s: %w", journal.JournalFile, name, f.Key, err)
			}
		}
	}
	if err := a.cluster(columns); err != nil {
		return err
	}
	for name, c := range columns {
		s.Rewards[name] = c.acc.Estimate(a.tasks.Len(), c.perTask)
	}
	return nil
}

func countFailure(all map[string]*journal.FailureCount, line *journal.ScoreLine) {
	f := line.Failure
	if f == nil {
		return
	}
	id := string(f.Source) + "/" + f.Kind
	if all[id] == nil {
		all[id] = &journal.FailureCount{Source: f.Source, Kind: f.Kind, Example: fmt.Sprintf("%s.%s of %s: %s", line.Plugin, line.Scorer, line.Key, f.Message)}
	}
	all[id].Count++
}

// exitCode is the table of docs/operations.md; several may apply: 130/143 > 4 > 3.
func (a *attempt) exitCode(s *journal.Summary, end *ending) int {
	switch {
	case end.interrupted != 0:
		return end.interrupted
	case end.died != nil:
		return ExitServer
	case end.err != nil && failure.Of(end.err).Source == failure.Config:
		return ExitUsage
	case end.err != nil, s.Planned == 0, s.Cancelled+s.NeverRun > 0:
		return ExitIncomplete
	}
	allowed := a.cfg.Run.MaxErrorRate
	if float64(s.Errors) > allowed*float64(s.Planned) || !scored(s) {
		return ExitIncomplete
	}
	for _, e := range s.Scores {
		if float64(e.Missing) > allowed*float64(e.Rollouts) {
			return ExitIncomplete
		}
	}
	return ExitOK
}

// scored reports whether there is any number at all: without [[score]] the server's rewards count.
func scored(s *journal.Summary) bool {
	columns := s.Scores
	if len(columns) == 0 {
		columns = s.Rewards
	}
	for _, e := range columns {
		if e.Scored > 0 {
			return true
		}
	}
	return false
}
