package host

import (
	"bytes"
	"fmt"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/rollout"
	"github.com/wevalr/wevalr/host/stats"
	"github.com/wevalr/wevalr/plugins/abi"
)

// columns reduces score lines to estimates, one for each name that a summary has.
type columns struct {
	tasks    *journal.Tasks
	rollouts int
	infos    map[[2]string]plugin.Scorer // by alias and scorer
	byKey    map[string]column
	names    map[[2]string]int // how many columns a scorer has made by giving names
	failed   map[string]*journal.FailureCount
	leftOut  bool // there were more names than columns
}

// column is one estimate in the making: an accumulator and how many values a task should have.
type column struct {
	acc     *stats.Accumulator
	perTask int
}

func newColumns(tasks *journal.Tasks, rollouts int, scorers []rollout.Scorer) *columns {
	c := &columns{
		tasks: tasks, rollouts: rollouts, infos: map[[2]string]plugin.Scorer{},
		byKey: map[string]column{}, names: map[[2]string]int{}, failed: map[string]*journal.FailureCount{},
	}
	for i := range scorers {
		info := scorerInfo(&scorers[i])
		c.infos[[2]string{scorers[i].Alias, scorers[i].Name}] = info
		c.byKey[rollout.ScoreKey(scorers[i].Alias, scorers[i].Name, "")] = c.column(info)
	}
	return c
}

func (c *columns) column(info plugin.Scorer) column {
	opt := stats.Options{Binary: info.Binary}
	if len(info.Range) == 2 {
		opt.Range = &stats.Interval{info.Range[0], info.Range[1]}
	}
	col := column{acc: stats.New(opt), perTask: c.rollouts}
	if info.Kind == plugin.KindGroup {
		col.perTask = 1
	}
	return col
}

// add takes one line; lines of scorers and tasks that are not the columns' are passed over.
func (c *columns) add(line *journal.ScoreLine) error {
	scorer := [2]string{line.Plugin, line.Scorer}
	info, ours := c.infos[scorer]
	task, known := c.tasks.Ordinal(line.Key)
	if !ours || !known || line.Index != nil && *line.Index >= c.rollouts {
		return nil
	}
	if f := line.Failure; f != nil {
		c.fail(f.Source, f.Kind, "%s.%s of %s: %s", line.Plugin, line.Scorer, line.Key, f.Message)
	}
	for _, v := range line.Scores {
		key := rollout.ScoreKey(line.Plugin, line.Scorer, v.Name)
		if !c.has(key, scorer, info) {
			c.fail(failure.Plugin, "response", "%s.%s of %s: over %d different names: %s is in %s alone",
				line.Plugin, line.Scorer, line.Key, abi.MaxScores, v.Name, journal.ScoresFile)
			continue
		}
		if err := c.value(key, task, v.Value); err != nil {
			return fmt.Errorf("%s: %s: %w", journal.ScoresFile, line.Key, err)
		}
	}
	return nil
}

// reward takes one of the env-server's own numbers.
func (c *columns) reward(name string, task int, v *float64) error {
	if !c.has(name, [2]string{}, plugin.Scorer{}) {
		c.fail(failure.Server, "protocol", "over %d different rewards: %.100s is in %s alone", abi.MaxScores, name, journal.JournalFile)
		return nil
	}
	return c.value(name, task, v)
}

// has makes the column of a name that is new. It reports false where the scorer has given too many: each takes
// memory for every task.
func (c *columns) has(key string, scorer [2]string, info plugin.Scorer) bool {
	if _, ok := c.byKey[key]; ok {
		return true
	}
	if c.names[scorer] == abi.MaxScores {
		c.leftOut = true
		return false
	}
	c.names[scorer]++
	c.byKey[key] = c.column(info)
	return true
}

// value adds one number to its column.
func (c *columns) value(key string, task int, v *float64) error {
	acc := c.byKey[key].acc
	if v == nil {
		acc.Null(task)
		return nil
	}
	if err := acc.Add(task, *v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// fail counts a failure of scoring: a score that is missing, never a 0. The first of a kind is its example.
func (c *columns) fail(source failure.Source, kind, format string, args ...any) {
	id := string(source) + "/" + kind
	if c.failed[id] == nil && len(c.failed) >= journal.MaxKinds {
		source, kind, id = failure.Plugin, "other", "plugin/other"
	}
	if c.failed[id] == nil {
		c.failed[id] = &journal.FailureCount{Source: source, Kind: kind, Example: fmt.Sprintf(format, args...)}
	}
	c.failed[id].Count++
}

// failures are what fail counted.
func (c *columns) failures() []journal.FailureCount {
	out := make([]journal.FailureCount, 0, len(c.failed))
	for _, f := range c.failed {
		out = append(out, *f)
	}
	return out
}

// estimates reduces the columns. Tasks are read once more, for the clusters that they declare.
func (c *columns) estimates() (map[string]stats.Estimate, error) {
	c.dropUnused()
	if err := c.cluster(); err != nil {
		return nil, err
	}
	out := make(map[string]stats.Estimate, len(c.byKey))
	for key, col := range c.byKey {
		out[key] = col.acc.Estimate(c.tasks.Len(), col.perTask)
	}
	return out, nil
}

// dropUnused takes away the column of a scorer that gives only named scores: it has nothing in it while
// alias.scorer.name has.
func (c *columns) dropUnused() {
	for id := range c.infos {
		key := rollout.ScoreKey(id[0], id[1], "")
		if e := c.byKey[key].acc.Estimate(0, 1); e.Scored+e.Null > 0 {
			continue
		}
		for other := range c.byKey {
			if len(other) > len(key) && other[:len(key)+1] == key+"." {
				delete(c.byKey, key)
				break
			}
		}
	}
}

// cluster tells the accumulators which tasks belong together.
func (c *columns) cluster() error {
	if len(c.byKey) == 0 {
		return nil
	}
	for i := range c.tasks.Len() {
		raw, _, err := c.tasks.Task(i)
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
		for _, col := range c.byKey {
			col.acc.Cluster(i, task.Cluster)
		}
	}
	return nil
}
