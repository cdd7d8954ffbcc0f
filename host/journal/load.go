package journal

import (
	"errors"
	"fmt"
	"os"
)

// tails are the ends of what is committed, by file; where nothing is known of a file, all of it is.
type tails struct {
	ends   map[string]int64
	scores int // lines of scores.jsonl that do not count
}

// load reads a run's directory. The journal's size is taken first: the tasks and episodes that its
// lines speak of are then there, even while another process writes.
func load(dir string) (*View, *tails, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("journal: open run: %w", err)
	}
	v := &View{dir: dir, root: root, table: newTable(), flush: func() error { return nil }}
	ends, err := v.load()
	if err != nil {
		root.Close()
		return nil, nil, err
	}
	return v, ends, nil
}

func (v *View) load() (*tails, error) {
	var err error
	if v.identity, err = readIdentity(v.root); err != nil {
		return nil, err
	}
	size, err := fileSize(v.root, JournalFile)
	if err != nil {
		return nil, err
	}
	t := &tails{ends: map[string]int64{TracesFile: 0, ErroredFile: 0}}
	if t.ends[TasksFile], err = loadTasks(v.root, v.table); err != nil {
		return nil, err
	}
	if err := v.loadJournal(size, t); err != nil {
		return nil, err
	}
	t.scores, err = loadScores(v.root, v.table)
	return t, err
}

// loadJournal applies the journal's lines and finds where the committed episodes end.
func (v *View) loadJournal(size int64, t *tails) error {
	lines := map[string]int{} // the line that speaks of the last episode
	end, _, err := eachLine(v.root, JournalFile, size, func(l *lineReader, line []byte) error {
		r, err := parseRecord(line)
		if err == nil {
			err = v.table.apply(r)
		}
		if err != nil {
			return l.corrupt(err)
		}
		ref := r.Episode
		if ref == (Ref{}) {
			return nil
		}
		if ref.Off < t.ends[ref.File] {
			return l.corrupt(fmt.Errorf("episode at byte %d of %s lies in another one", ref.Off, ref.File))
		}
		t.ends[ref.File], lines[ref.File] = ref.Off+ref.Len+1, l.line
		return nil
	})
	if err != nil {
		return err
	}
	v.table.endAttempt()
	t.ends[JournalFile] = end
	for _, name := range []string{TracesFile, ErroredFile} {
		size, err := fileSize(v.root, name)
		if err != nil {
			return err
		}
		if size < t.ends[name] {
			return &CorruptError{JournalFile, lines[name], fmt.Errorf("its episode ends at byte %d of %s, which has %d", t.ends[name], name, size)}
		}
	}
	return nil
}

// apply repeats what was done when the record was written.
func (t *table) apply(r *record) error {
	switch r.T {
	case recOpen:
		if r.Attempt != t.attempts+1 {
			return fmt.Errorf("attempt %d after attempt %d", r.Attempt, t.attempts)
		}
		t.attempts = r.Attempt
		t.endAttempt()
	case recDispatch:
		return t.begin(r.Key, r.Index, r.Try)
	case recFinish:
		if err := t.claim(&r.Finish); err != nil {
			return err
		}
		t.settle(&r.Finish, true)
	case recServer:
		t.server(&r.ServerEvent)
	}
	return nil
}

// fileSize is 0 for a file that is not there.
func fileSize(root *os.Root, name string) (int64, error) {
	info, err := root.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("journal: %w", err)
	}
	return info.Size(), nil
}
