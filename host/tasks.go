package host

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"slices"
	"strconv"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/rollout"
	"github.com/wevalr/wevalr/plugins/abi"
)

var errEnough = errors.New("enough tasks")

// taskSet enumerates the plan's tasks in its order: those whose key matches tasks.select, shuffled by
// hash(seed, key) where asked, the first num_tasks of them. So a smaller -n is a prefix of a larger one.
func taskSet(ctx context.Context, p *plugin.Plugin, t *config.Tasks) iter.Seq2[journal.Task, error] {
	if t.Shuffle {
		return shuffled(ctx, p, t)
	}
	return func(yield func(journal.Task, error) bool) {
		n := 0
		err := selected(ctx, p, t, func(task journal.Task) error {
			if !yield(task, nil) {
				return errEnough
			}
			if n++; n == t.NumTasks {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(journal.Task{}, err)
		}
	}
}

// selected gives the encoded tasks whose key matches.
func selected(ctx context.Context, p *plugin.Plugin, t *config.Tasks, f func(journal.Task) error) error {
	return p.Tasks(ctx, func(task abi.Task) error {
		if t.Select != "" {
			if ok, err := path.Match(t.Select, task.Key); err != nil || !ok {
				return err
			}
		}
		raw, err := rollout.EncodeTask(&task)
		if err != nil {
			return err
		}
		return f(journal.Task{Key: task.Key, JSON: raw})
	})
}

// place is where a task lies in the shuffle's scratch file.
type place struct {
	rank [16]byte // of the hash
	key  string
	off  int64
	len  int
}

// shuffled spools all tasks to a scratch file, so that memory holds only their places.
func shuffled(ctx context.Context, p *plugin.Plugin, t *config.Tasks) iter.Seq2[journal.Task, error] {
	return func(yield func(journal.Task, error) bool) {
		err := shuffle(ctx, p, t, yield)
		if err != nil && !errors.Is(err, errEnough) {
			yield(journal.Task{}, fmt.Errorf("shuffle: %w", err))
		}
	}
}

func shuffle(ctx context.Context, p *plugin.Plugin, t *config.Tasks, yield func(journal.Task, error) bool) error {
	scratch, err := os.CreateTemp("", "wevalr-tasks-")
	if err != nil {
		return err
	}
	defer scratch.Close()
	if err := os.Remove(scratch.Name()); err != nil { // now: a kill leaves nothing behind
		return err
	}
	w := bufio.NewWriter(scratch)
	var places []place
	var off int64
	err = selected(ctx, p, t, func(task journal.Task) error {
		places = append(places, place{rank: rank(t.Seed, task.Key), key: task.Key, off: off, len: len(task.JSON)})
		off += int64(len(task.JSON))
		_, err := w.Write(task.JSON)
		return err
	})
	if err = errors.Join(err, w.Flush()); err != nil {
		return err
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(slices.Compare(a.rank[:], b.rank[:]), cmp.Compare(a.key, b.key))
	})
	if t.NumTasks > 0 && t.NumTasks < len(places) {
		places = places[:t.NumTasks]
	}
	for _, pl := range places {
		raw := make([]byte, pl.len)
		if _, err := io.ReadFull(io.NewSectionReader(scratch, pl.off, int64(pl.len)), raw); err != nil {
			return err
		}
		if !yield(journal.Task{Key: pl.key, JSON: raw}, nil) {
			return errEnough
		}
	}
	return nil
}

// rank is a task's place in the shuffle: the first 16 bytes of sha256(seed ‖ 0 ‖ key).
func rank(seed int64, key string) [16]byte {
	sum := sha256.Sum256([]byte(strconv.FormatInt(seed, 10) + "\x00" + key))
	return [16]byte(sum[:16])
}

// taskError says whose fault a task set is: a changed one is the operator's business.
func taskError(err error) error {
	if _, ok := errors.AsType[*journal.TaskSetError](err); ok {
		return UsageError{fmt.Errorf("%w\n  the tasks of a run may grow at their end, and change in no other way; start a new run with wevalr run", err)}
	}
	return err
}
