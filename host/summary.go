package host

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
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

// estimateScores reads scores.jsonl, a line at a time.
func (a *attempt) estimateScores(s *journal.Summary) error {
	c := newColumns(a.tasks, a.cfg.Tasks.NumRollouts, a.plugins.scorers)
	for line, err := range a.run.Scores() {
		if err != nil {
			return err
		}
		if err := c.add(&line); err != nil {
			return err
		}
	}
	var err error
	s.Scores, err = a.take(s, c)
	return err
}

// take reduces columns, whose failures become the summary's.
func (a *attempt) take(s *journal.Summary, c *columns) (map[string]stats.Estimate, error) {
	s.Failures = append(s.Failures, c.failures()...)
	slices.SortStableFunc(s.Failures, func(x, y journal.FailureCount) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Kind, y.Kind))
	})
	a.leftOut = a.leftOut || c.leftOut
	return c.estimates()
}

// estimateRewards reads the journal's finish lines: the env-server's own numbers.
func (a *attempt) estimateRewards(s *journal.Summary) error {
	if !a.run.Rewarded() {
		return nil
	}
	c := newColumns(a.tasks, a.cfg.Tasks.NumRollouts, nil)
	for f, err := range a.run.Finishes() {
		if err != nil {
			return err
		}
		task, known := a.tasks.Ordinal(f.Key)
		if !known || !f.Outcome.Finished() || f.Index >= a.cfg.Tasks.NumRollouts {
			continue
		}
		for name, v := range f.Rewards {
			if err := c.reward(name, task, v); err != nil {
				return fmt.Errorf("%s: reward of %s: %w", journal.JournalFile, f.Key, err)
			}
		}
	}
	var err error
	s.Rewards, err = a.take(s, c)
	return err
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
	case end.err != nil, s.Planned == 0, s.Cancelled+s.NeverRun > 0, a.leftOut:
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
