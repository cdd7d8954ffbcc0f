package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/renameio/v2"

	"github.com/wevalr/wevalr/host/stats"
)

// RescoredDir holds what `rescore` gave, a folder each: n-<alias>/scores.jsonl and summary.json.
const RescoredDir = "rescored"

// Rescore is a second opinion on a finished run, beside its own files. Add is safe for concurrent use.
type Rescore struct {
	dir string
	mu  sync.Mutex
	f   *os.File
	w   *bufio.Writer
}

// RescoreSummary is a rescore's summary.json.
type RescoreSummary struct {
	Format string                    `json:"format"` // wevalr.rescore/1, filled in
	Run    string                    `json:"run"`
	Plugin SummaryPlugin             `json:"plugin"`
	Counts Counts                    `json:"counts"` // of the run
	Scores map[string]stats.Estimate `json:"scores"`
}

// NewRescore makes the next folder under rescored/. The run itself is not locked: nothing of it is
// written.
func (v *View) NewRescore(alias string) (*Rescore, error) {
	if !validName.MatchString(alias) {
		return nil, fmt.Errorf("journal: rescore: name %q: want [a-z0-9][a-z0-9._-]{0,62}", alias)
	}
	if err := v.root.MkdirAll(RescoredDir, 0o755); err != nil {
		return nil, &DiskError{"make", RescoredDir, err}
	}
	for n := 1; ; n++ {
		name := filepath.Join(RescoredDir, fmt.Sprintf("%d-%s", n, alias))
		err := v.root.Mkdir(name, 0o755)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, &DiskError{"make", name, err}
		}
		f, err := v.root.Create(filepath.Join(name, ScoresFile))
		if err != nil {
			return nil, &DiskError{"make", name, err}
		}
		return &Rescore{dir: filepath.Join(v.dir, name), f: f, w: bufio.NewWriter(f)}, nil
	}
}

// Dir is the folder, under the run directory as that was given.
func (r *Rescore) Dir() string { return r.dir }

// Add appends a line.
func (r *Rescore) Add(s ScoreLine) error {
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("journal: rescore of %s: %w", s.Key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.w.Write(append(line, '\n')); err != nil {
		return &DiskError{"write", ScoresFile, err}
	}
	return nil
}

// Finish syncs the scores and writes the summary.
func (r *Rescore) Finish(s RescoreSummary) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.w.Flush(), r.f.Sync(), r.f.Close()); err != nil {
		return &DiskError{"write", ScoresFile, err}
	}
	s.Format = "wevalr.rescore/1"
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("journal: rescore: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(r.dir, SummaryFile), append(raw, '\n'), 0o644); err != nil {
		return &DiskError{"write", SummaryFile, err}
	}
	return nil
}

// Close gives up what was not finished; what was added stays.
func (r *Rescore) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.w.Flush(), r.f.Close())
}
