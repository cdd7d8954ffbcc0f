package rollout

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

const (
	// retained bounds what waits for a scorer in memory, in bytes of task and episode lines.
	retained = 16 << 20
	// waiting bounds how many rollouts wait, with or without their lines.
	waiting = 1024
)

// item is a finished rollout to be scored. Task and line are there while there is room for them, else
// they are read from the disk.
type item struct {
	ordinal, index int
	task           *abi.Task
	line           []byte
	size           int // of both
}

// scoring is NumCPU workers behind a bounded queue. A put never blocks: what finds no place is found
// by the sweep that ends it, as is what earlier attempts left unscored.
type scoring struct {
	*engine
	single, group []Scorer
	queue         chan item
	held          atomic.Int64 // bytes of the items in queue
	workers       sync.WaitGroup
	sweeps        sync.WaitGroup

	mu    sync.Mutex
	tried []bool // by ordinal × Rollouts + index: taken by this attempt
}

func newScoring(e *engine) *scoring {
	s := &scoring{engine: e, queue: make(chan item, waiting)}
	for _, sc := range e.Scorers {
		if sc.Kind == plugin.KindGroup {
			s.group = append(s.group, sc)
		} else {
			s.single = append(s.single, sc)
		}
	}
	if len(s.single) > 0 {
		s.tried = make([]bool, e.Tasks.Len()*e.Rollouts)
	}
	return s
}

// start starts the workers, and scores what earlier attempts left.
func (s *scoring) start(ctx context.Context) {
	if len(s.single) == 0 {
		return
	}
	for range runtime.NumCPU() {
		s.workers.Go(func() {
			for it := range s.queue {
				if ctx.Err() == nil && s.claim(it) { // else it stays unscored, and a resume scores it
					s.score(ctx, it)
				}
				s.drop(&it)
			}
		})
	}
	s.sweeps.Go(func() { s.sweep(ctx) })
}

// put hands over a rollout that has just finished.
func (s *scoring) put(it item) {
	if len(s.single) == 0 {
		return
	}
	if s.held.Add(int64(it.size)) > retained {
		s.drop(&it)
	}
	select {
	case s.queue <- it:
	default:
		s.drop(&it)
	}
}

// drop lets go of what an item holds.
func (s *scoring) drop(it *item) {
	s.held.Add(-int64(it.size))
	it.task, it.line, it.size = nil, nil, 0
}

// claim takes a rollout, once in an attempt: a scorer that failed is not tried again before the next.
func (s *scoring) claim(it item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := it.ordinal*s.Rollouts + it.index
	was := s.tried[at]
	s.tried[at] = true
	return !was
}

// sweep queues every finished rollout that lacks a score.
func (s *scoring) sweep(ctx context.Context) {
	for ordinal := range s.Tasks.Len() {
		for index := range s.Rollouts {
			if !s.owed(ordinal, index) {
				continue
			}
			select {
			case s.queue <- item{ordinal: ordinal, index: index}:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *scoring) owed(ordinal, index int) bool {
	if !s.Journal.State(ordinal, index).Outcome.Finished() {
		return false
	}
	s.mu.Lock()
	tried := s.tried[ordinal*s.Rollouts+index]
	s.mu.Unlock()
	if tried {
		return false
	}
	for i := range s.single {
		if !s.Journal.Scored(ordinal, index, s.single[i].Alias, s.single[i].Name) {
			return true
		}
	}
	return false
}

// finish waits until everything is scored, then scores the groups. No put comes after it.
func (s *scoring) finish(ctx context.Context) {
	if len(s.single) > 0 {
		s.sweeps.Wait()
		s.sweep(ctx)
		close(s.queue)
		s.workers.Wait()
	}
	if len(s.group) > 0 {
		s.scoreGroups(ctx)
	}
}

// score gives one finished rollout to every scorer that has not scored it yet.
func (s *scoring) score(ctx context.Context, it item) {
	task, line := it.task, it.line
	var err error
	if task == nil {
		if task, _, err = s.task(it.ordinal); err != nil {
			s.fail(err)
			return
		}
	}
	if line == nil {
		if line, err = s.Journal.Episode(s.Journal.State(it.ordinal, it.index).Episode); err != nil {
			s.fail(err)
			return
		}
	}
	episode, unread := wire.ParseEpisode(line)
	for i := range s.single {
		sc := &s.single[i]
		if s.Journal.Scored(it.ordinal, it.index, sc.Alias, sc.Name) {
			continue
		}
		out, err := sc.line(ctx, &s.Request, task, it.index, episode, unread)
		if err != nil {
			return // the attempt is over, and the score is owed
		}
		s.write(sc, out)
	}
}

// write records a line. One that the journal cannot take is a failure of its scorer; only the disk
// ends the attempt.
func (s *scoring) write(sc *Scorer, line journal.ScoreLine) {
	line.Failure = s.masked(line.Failure)
	err := s.Journal.Score(line)
	if err != nil && s.Journal.Err() == nil {
		line.Scores, line.Failure = nil, failure.New(failure.Host, "internal", "score not recorded: %v", err)
		err = s.Journal.Score(line)
	}
	if err != nil {
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
