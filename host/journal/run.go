package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
)

// Run is a run that is being written: a [View] that stays current, and the writes. End it by Close.
type Run struct {
	*View
	disk    disk
	lock    *flock.Flock
	queue   chan *entry
	done    chan struct{} // closed when the owner of the files has ended
	journal *tail         // the one file that has a second writer: Dispatch
	failed  atomic.Pointer[DiskError]

	mu     sync.RWMutex // held for reading while something is put into the queue, or written at once
	closed bool
}

// Err is the first *[DiskError], after which nothing is written any more; nil as long as all is well.
func (r *Run) Err() error {
	if err := r.failed.Load(); err != nil {
		return err
	}
	return nil
}

// seal makes err the end of all writing, unless there was one before, and gives the one that is.
func (r *Run) seal(err *DiskError) error {
	r.failed.CompareAndSwap(nil, err)
	return r.failed.Load()
}

// Recovered lists what a crash had left, found when the run was opened.
func (r *Run) Recovered() []Note { return r.recovered }

// Dispatch records that a try is about to be sent: try is [State].Tries + 1. When it returns nil the
// line is written and survives wevalr's death, so that no later attempt gives the same try again; a
// crash of the machine can lose it until the next Finish. It waits for no sync.
//
// # Errors
//
// *[StateError] for an unknown task, a finished rollout, one in flight, or another try; *[DiskError];
// [ErrClosed].
func (r *Run) Dispatch(key string, index, try int, at time.Time) error {
	if err := r.table.begin(key, index, try); err != nil {
		return err
	}
	return r.atOnce(dispatchLine{head{recDispatch, at.UTC()}, key, index, try})
}

// Finish commits the end of a try, once for each Dispatch, and gives its episode's place. When it
// returns nil the episode and the finish survive any crash. The episode is one line of JSON without
// its newline; it may be empty for an error or a cancelled try. ctx bounds only the wait for a place
// in the queue.
//
// # Errors
//
// *[StateError] for a try that was not dispatched in this attempt, a second finish, an outcome without
// its episode or failure; *[DiskError]; [ErrClosed]; context.Cause(ctx). The try is then not finished.
func (r *Run) Finish(ctx context.Context, f Finish, episode []byte) (Ref, error) {
	e, err := finishEntry(&f, episode)
	if err != nil {
		return Ref{}, &StateError{f.Key, f.Index, f.Try, err.Error()}
	}
	if err := r.table.claim(&f); err != nil {
		return Ref{}, err
	}
	if err = r.send(ctx, e); err == nil {
		err = <-e.done
	}
	f.Episode = e.ref
	r.table.settle(&f, err == nil)
	if err != nil {
		return Ref{}, err
	}
	return e.ref, nil
}

// finishEntry does what needs no file position on the caller's time: encoding and checksum.
func finishEntry(f *Finish, episode []byte) (*entry, error) {
	if err := f.check(len(episode) > 0); err != nil {
		return nil, err
	}
	if n := len(episode); n > 0 {
		if n > maxEpisode || episode[0] != '{' || episode[n-1] != '}' || bytes.IndexByte(episode, '\n') >= 0 {
			return nil, errors.New("its episode is not one line with a JSON object")
		}
	}
	f.Episode = Ref{}
	line, err := json.Marshal(finishLine{head{recFinish, f.End.UTC()}, *f})
	if err != nil {
		return nil, err
	}
	return &entry{
		to: toJournal, line: line, sync: true, done: make(chan error, 1),
		episode: episode, file: episodeFile(f.Outcome), crc: crc32.Checksum(episode, castagnoli()),
	}, nil
}

// Server records a point in the life of an env-server. It is queued, and synced when it is written.
func (r *Run) Server(ev ServerEvent) error {
	ev.Attempt = r.Attempt()
	r.table.server(&ev)
	line, err := json.Marshal(serverLine{head{recServer, ev.At.UTC()}, ev})
	if err != nil {
		return fmt.Errorf("journal: server: %w", err)
	}
	return r.queueLine(&entry{to: toJournal, line: line, sync: true})
}

// Score appends a line to scores.jsonl; a line for the same rollout (or group) and scorer replaces the
// one before. It is queued and not synced at once, since a score can be computed again.
//
// # Errors
//
// *[StateError] for a rollout that has not finished; NaN or Inf.
func (r *Run) Score(s ScoreLine) error {
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("journal: score of %s: %w", s.Key, err)
	}
	if err := r.table.score(&s); err != nil {
		return err
	}
	return r.queueLine(&entry{to: toScores, line: line})
}

// Close records the end of the attempt, syncs everything and releases the lock. A call that
// comes after it, a second Close included, says [ErrClosed].
//
// # Errors
//
// The *[DiskError] of this or any earlier write.
func (r *Run) Close(ev CloseEvent) error {
	line, err := json.Marshal(closeLine{head{recClose, ev.At.UTC()}, ev})
	if err != nil {
		return fmt.Errorf("journal: close: %w", err)
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return ErrClosed
	}
	r.closed = true
	r.mu.Unlock()
	r.queue <- &entry{to: toJournal, line: line, sync: true}
	close(r.queue)
	<-r.done
	err = r.Err()
	if err == nil && len(r.table.scores.old) > 0 {
		_, err = cleanScores(r.disk, r.root, r.table, r.Attempt())
	}
	return errors.Join(err, r.release())
}

// release lets go of the directory.
func (r *Run) release() error {
	err := errors.Join(r.View.Close(), r.lock.Close())
	if err != nil {
		return fmt.Errorf("journal: close: %w", err)
	}
	return nil
}

// lockDir takes the run's lock and leaves our pid in it.
func lockDir(dir string, root *os.Root) (*flock.Flock, error) {
	l := flock.New(dir+"/"+lockFile, flock.SetPermissions(0o644))
	ok, err := l.TryLock()
	if err != nil {
		return nil, &DiskError{"lock", lockFile, err}
	}
	if !ok {
		var pid int
		if raw, err := root.ReadFile(lockFile); err == nil {
			_, _ = fmt.Sscan(string(raw), &pid) // 0: not written yet
		}
		return nil, &LockedError{dir, pid}
	}
	if err := root.WriteFile(lockFile, fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
		return nil, errors.Join(&DiskError{"write", lockFile, err}, l.Close())
	}
	return l, nil
}
