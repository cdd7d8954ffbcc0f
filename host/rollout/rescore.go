package rollout

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/wire"
)

// Rescoring is a run's finished rollouts, and who is to score them again.
type Rescoring struct {
	Run      *journal.View
	Rollouts int
	Scorers  []Scorer
	Request  Request
	// Emit gets each line, from several goroutines, in no order. Its error ends the rescoring.
	Emit func(journal.ScoreLine) error
}

// Rescore scores every finished rollout again: the same calls as in a run, on the episodes as they
// are on disk. Nothing of the run is written. It returns ctx's cause when ctx ends.
func Rescore(ctx context.Context, r Rescoring) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for ordinal := range r.Run.Tasks().Len() {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error { return r.task(gctx, ordinal) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// task scores one task's rollouts, then its group where that is whole.
func (r *Rescoring) task(ctx context.Context, ordinal int) error {
	var indices []int
	var refs []journal.Ref
	for index := range r.Rollouts {
		if st := r.Run.State(ordinal, index); st.Outcome.Finished() {
			indices, refs = append(indices, index), append(refs, st.Episode)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	raw, _, err := r.Run.Tasks().Task(ordinal)
	if err != nil {
		return err
	}
	task, err := DecodeTask(raw)
	if err != nil {
		return err
	}
	episodes, unread, err := episodesOf(r.Run, refs)
	if err != nil {
		return err
	}
	for i := range r.Scorers {
		sc := &r.Scorers[i]
		if sc.Kind == plugin.KindGroup {
			if len(refs) < r.Rollouts {
				continue
			}
			line, err := sc.groupLine(ctx, &r.Request, task, episodes, unread)
			if err == nil {
				err = r.Emit(line)
			}
			if err != nil {
				return err
			}
			continue
		}
		for j, index := range indices {
			broken := unread
			if episodes[j] != nil {
				broken = nil // another one of this task is
			}
			line, err := sc.line(ctx, &r.Request, task, index, episodes[j], broken)
			if err == nil {
				err = r.Emit(line)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// episodesOf reads episodes. unread is why one of them cannot be understood, err why the disk gives none.
func episodesOf(v *journal.View, refs []journal.Ref) (episodes []*wire.Episode, unread, err error) {
	episodes = make([]*wire.Episode, len(refs))
	for i, ref := range refs {
		line, err := v.Episode(ref)
		if err != nil {
			return nil, nil, err
		}
		ep, err := wire.ParseEpisode(line)
		if err != nil {
			unread = err
		}
		episodes[i] = ep
	}
	return episodes, unread, nil
}
