package rollout

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/wevalr/wevalr/host/journal"
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
	episodes, unread, err := episodesOf(s.Journal.View, refs)
	if err != nil {
		return err
	}
	for _, sc := range owed {
		out, err := sc.groupLine(ctx, &s.Request, task, episodes, unread)
		if err != nil {
			return nil //nolint:nilerr // the attempt is over, and the score is owed
		}
		s.write(sc, out)
	}
	return nil
}
