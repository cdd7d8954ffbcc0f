package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// recover moves what stands after the last commit mark of each file to recovered/. It can be killed at
// any point and done again; what was copied but not cut off is then copied twice.
func (r *Run) recover(t *tails) error {
	if err := sweep(r.root); err != nil {
		return err
	}
	var err error
	if t.ends[PartialFile], _, err = eachLine(r.root, PartialFile, -1, func(*lineReader, []byte) error { return nil }); err != nil {
		return err
	}
	for _, f := range []struct{ name, what string }{
		{TasksFile, "torn line"},
		{JournalFile, "torn line"},
		{TracesFile, "episodes without their finish"},
		{ErroredFile, "episodes without their finish"},
		{PartialFile, "torn line"},
	} {
		size, err := fileSize(r.root, f.name)
		if err != nil {
			return err
		}
		end := t.ends[f.name]
		if size <= end {
			continue
		}
		to, err := recoverTo(r.root, f.name, r.table.attempts+1)
		if err != nil {
			return err
		}
		if err := r.disk.Cut(f.name, end, to); err != nil {
			return err
		}
		r.recovered = append(r.recovered, Note{f.name, end, size - end, to, f.what})
	}
	if t.scores == 0 {
		return nil
	}
	return r.recoverScores()
}

// recoverTo finds a free name in recovered/ for what an attempt moves out of a file.
func recoverTo(root *os.Root, name string, attempt int) (string, error) {
	if err := root.MkdirAll(RecoverDir, 0o755); err != nil {
		return "", &DiskError{"make", RecoverDir, err}
	}
	ext := filepath.Ext(name)
	to := fmt.Sprintf("%s/%s-%s%s", RecoverDir, strings.TrimSuffix(name, ext), attemptName(attempt), ext)
	for n := 2; ; n++ {
		_, err := root.Lstat(to)
		if errors.Is(err, os.ErrNotExist) {
			return to, nil
		}
		if err != nil {
			return "", &DiskError{"find", to, err}
		}
		to = fmt.Sprintf("%s/%s-%s-%d%s", RecoverDir, strings.TrimSuffix(name, ext), attemptName(attempt), n, ext)
	}
}

// recoverScores leaves in scores.jsonl the lines that count.
func (r *Run) recoverScores() error {
	before, err := fileSize(r.root, ScoresFile)
	if err != nil {
		return err
	}
	to, err := cleanScores(r.disk, r.root, r.table, r.table.attempts+1)
	if err != nil {
		return err
	}
	after, err := fileSize(r.root, ScoresFile)
	if err != nil {
		return err
	}
	r.recovered = append(r.recovered, Note{
		ScoresFile, 0, before - after, to, "lines that are torn, replaced, or without their rollout",
	})
	return nil
}

// cleanScores moves the lines of scores.jsonl that do not count to recovered/: first they are copied,
// then the file is replaced.
func cleanScores(d disk, root *os.Root, t *table, attempt int) (to string, err error) {
	if to, err = recoverTo(root, ScoresFile, attempt); err != nil {
		return "", err
	}
	pick := func(counts bool) func(io.Writer) error {
		return func(w io.Writer) error {
			current := t.current()
			end, torn, err := eachLine(root, ScoresFile, -1, func(_ *lineReader, line []byte) error {
				if _, ok := current(line); ok != counts {
					return nil
				}
				_, err := fmt.Fprintf(w, "%s\n", line)
				return err
			})
			if err != nil || torn == 0 || counts {
				return err
			}
			f, err := root.Open(ScoresFile)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(w, io.NewSectionReader(f, end, torn))
			return err
		}
	}
	if err := d.Replace(to, pick(false)); err != nil {
		return "", err
	}
	if err := d.Replace(ScoresFile, pick(true)); err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.scores.old)
	return to, nil
}
