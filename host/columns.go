package host

import (
	"bytes"
	"fmt"

	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/rollout"
	"github.com/wevalr/wevalr/host/stats"
)

// columns reduces score lines to estimates, one for each name that a summary has.
type columns struct {
	tasks    *journal.Tasks
	rollouts int
	infos    map[[2]string]plugin.Scorer // by alias and scorer
	byKey    map[string]column
	failed   map[string]*journal.FailureCount
}

// column is one estimate in the making: an accumulator and how many values a task should have.
type column struct {
	acc     *stats.Accumulator
	perTask int
}

func newColumns(tasks *journal.Tasks, rollouts int, scorers []rollout.Scorer) *columns {
	c := &columns{
		tasks: tasks, rollouts: rollouts, infos: map[[2]string]plugin.Scorer{},
		byKey: map[string]column{}, failed: map[string]*journal.FailureCount{},
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
	info, ours := c.infos[[2]string{line.Plugin, line.Scorer}]
	task, known := c.tasks.Ordinal(line.Key)
	if !ours || !known || line.Index != nil && *line.Index >= c.rollouts {
		return nil
	}
	c.fail(line)
	for _, v := range line.Scores {
		if err := c.value(rollout.ScoreKey(line.Plugin, line.Scorer, v.Name), info, task, v.Value); err != nil {
			return fmt.Errorf("%s: %s: %w", journal.ScoresFile, line.Key, err)
		}
	}
	return nil
}

// value adds one number to the column of that name, which is made where it is new.
func (c *columns) value(key string, info plugin.Scorer, task int, v *float64) error {
	col, ok := c.byKey[key]
	if !ok {
		col = c.column(info)
		c.byKey[key] = col
	}
	if v == nil {
		col.acc.Null(task)
		return nil
	}
	if err := col.acc.Add(task, *v); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// fail counts a scorer's failure: a score that is missing, never a 0.
func (c *columns) fail(line *journal.ScoreLine) {
	f := line.Failure
	if f == nil {
		return
	}
	id := string(f.Source) + "/" + f.Kind
	if c.failed[id] == nil {
		c.failed[id] = &journal.FailureCount{
			Source: f.Source, Kind: f.Kind,
			Example: fmt.Sprintf("%s.%s of %s: %s", line.Plugin, line.Scorer, line.Key, f.Message),
		}
	}
	c.failed[id].Count++
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
