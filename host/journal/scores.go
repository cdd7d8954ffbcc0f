package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"

	"github.com/wevalr/wevalr/host/failure"
)

// maxScorers bounds the scorers of a run: a cell has a bit for each.
const maxScorers = 64

// ScoreLine is a line of scores.jsonl: what one scorer said of one rollout, or of one task's group.
type ScoreLine struct {
	Key string `json:"key"`
	// Index is nil for a group scorer.
	Index  *int   `json:"index"`
	Plugin string `json:"plugin"` // alias
	Scorer string `json:"scorer"`
	// Scores and Failure exclude each other.
	Scores   []Score          `json:"scores,omitempty"`
	Failure  *failure.Failure `json:"failure,omitempty"`
	Identity string           `json:"identity"`
	// Rollouts is how many episodes a group scorer saw.
	Rollouts int     `json:"rollouts,omitempty"`
	Fuel     uint64  `json:"fuel"`
	MS       float64 `json:"ms"`
}

// Score is one number. A nil Value was skipped by the scorer, which is not 0.
type Score struct {
	Name        string         `json:"name,omitempty"`
	Value       *float64       `json:"value"`
	Label       string         `json:"label,omitempty"`
	Explanation string         `json:"explanation,omitempty"`
	Answer      string         `json:"answer,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
}

// scoreID is what has one line: a rollout (index -1: a task's group) and a scorer's bit.
type scoreID struct {
	task, index int32
	bit         uint8
}

// scoreIndex knows which lines there are. Of several for one scoreID the last counts.
type scoreIndex struct {
	bits   map[[2]string]uint8
	groups map[scoreID]int      // rollouts that the last group line saw
	failed map[scoreID]struct{} // the last line is a failure
	old    map[scoreID]int      // lines before the last one
}

func newScoreIndex() scoreIndex {
	return scoreIndex{map[[2]string]uint8{}, map[scoreID]int{}, map[scoreID]struct{}{}, map[scoreID]int{}}
}

// scoreID finds what a line is about; it needs a finished rollout. The caller holds mu.
func (t *table) scoreID(s *ScoreLine) (scoreID, error) {
	index := -1
	if s.Index != nil {
		index = *s.Index
	}
	refuse := func(why string) (scoreID, error) { return scoreID{}, &StateError{Key: s.Key, Index: index, Why: why} }
	task, ok := t.ordinals[s.Key]
	if !ok {
		return refuse("scored: no such task")
	}
	if s.Index != nil {
		if c := t.at(int(task), index); c == nil || !outcomes()[c.outcome].Finished() {
			return refuse("scored before it finished")
		}
	}
	name := [2]string{s.Plugin, s.Scorer}
	bit, ok := t.scores.bits[name]
	if !ok {
		if len(t.scores.bits) == maxScorers {
			return refuse(fmt.Sprintf("scored by more than %d scorers", maxScorers))
		}
		bit = uint8(len(t.scores.bits))
		t.scores.bits[name] = bit
	}
	return scoreID{task, int32(index), bit}, nil
}

// score applies a line.
func (t *table) score(s *ScoreLine) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, err := t.scoreID(s)
	if err != nil {
		return err
	}
	var again bool
	if s.Index == nil {
		_, again = t.scores.groups[id]
		t.scores.groups[id] = s.Rollouts
	} else {
		c := t.at(int(id.task), int(id.index))
		again = c.scored&(1<<id.bit) != 0
		c.scored |= 1 << id.bit
	}
	if again {
		t.scores.old[id]++
	}
	delete(t.scores.failed, id)
	if s.Failure != nil {
		t.scores.failed[id] = struct{}{}
	}
	return nil
}

// current tells, for the lines of scores.jsonl in order, which ones count: those that can be read,
// have their rollout, and are the last of their scoreID.
func (t *table) current() func(line []byte) (*ScoreLine, bool) {
	t.mu.RLock()
	old := maps.Clone(t.scores.old)
	t.mu.RUnlock()
	return func(line []byte) (*ScoreLine, bool) {
		var s ScoreLine
		if json.Unmarshal(line, &s) != nil {
			return nil, false
		}
		t.mu.Lock()
		id, err := t.scoreID(&s)
		t.mu.Unlock()
		if err != nil {
			return nil, false
		}
		if old[id] > 0 {
			old[id]--
			return nil, false
		}
		return &s, true
	}
}

// Scored reports whether scorer has given its scores to a finished rollout. A scorer's failure is
// owed: it can be tried again.
func (v *View) Scored(task, index int, plugin, scorer string) bool {
	t := v.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	bit, ok := t.scores.bits[[2]string{plugin, scorer}]
	c := t.at(task, index)
	_, failed := t.scores.failed[scoreID{int32(task), int32(index), bit}]
	return ok && c != nil && c.scored&(1<<bit) != 0 && !failed
}

// ScoredGroup reports whether a group scorer has scored a task with this number of episodes; with
// another number it is owed.
func (v *View) ScoredGroup(task, rollouts int, plugin, scorer string) bool {
	t := v.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	bit, ok := t.scores.bits[[2]string{plugin, scorer}]
	id := scoreID{int32(task), -1, bit}
	saw, scored := t.scores.groups[id]
	_, failed := t.scores.failed[id]
	return ok && scored && saw == rollouts && !failed
}

// Scores reads the lines of scores.jsonl that count: one for each rollout (or task) and scorer.
func (v *View) Scores() iter.Seq2[ScoreLine, error] {
	return func(yield func(ScoreLine, error) bool) {
		if err := v.flush(); err != nil {
			yield(ScoreLine{}, err)
			return
		}
		current := v.table.current()
		_, _, err := eachLine(v.root, ScoresFile, -1, func(_ *lineReader, line []byte) error {
			if s, ok := current(line); ok && !yield(*s, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(ScoreLine{}, err)
		}
	}
}

// errStop ends a loop over lines that its reader has left.
var errStop = errors.New("stop")

// loadScores indexes scores.jsonl; dropped is how many lines do not count, broken, torn, orphaned or
// replaced.
func loadScores(root *os.Root, t *table) (dropped int, err error) {
	_, torn, err := eachLine(root, ScoresFile, -1, func(_ *lineReader, line []byte) error {
		var s ScoreLine
		if json.Unmarshal(line, &s) != nil || t.score(&s) != nil {
			dropped++
		}
		return nil
	})
	if torn > 0 {
		dropped++
	}
	for _, n := range t.scores.old {
		dropped += n
	}
	return dropped, err
}
