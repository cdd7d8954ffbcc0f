package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"os"
	"path/filepath"
)

// View is a run as its directory shows it, without a lock: it may be written at the same time, and
// then shows what was committed when it was read. Close it.
type View struct {
	dir       string
	root      *os.Root
	identity  Identity
	table     *table
	files     openFiles
	recovered []Note
	flush     func() error // makes what was queued readable
}

// Note is something that a crash left and that was moved away when the run was opened.
type Note struct {
	File  string // relative to the run directory
	Off   int64  // where it began
	Bytes int64
	Moved string // where it is now, relative to the run directory
	What  string
}

// Read opens a run for reading.
//
// # Errors
//
// *[CorruptError] for a complete line that is broken; what reading gave.
func Read(dir string) (*View, error) {
	v, _, err := load(dir)
	return v, err
}

// Close releases the directory.
func (v *View) Close() error { return errors.Join(v.files.close(), v.root.Close()) }

// Dir is the run directory, as it was given.
func (v *View) Dir() string { return v.dir }

// ID is the run's id.
func (v *View) ID() string { return v.identity.ID }

// Identity is what run.json and config.toml say.
func (v *View) Identity() Identity { return v.identity }

// Attempt is the number of the last attempt begun, from 1.
func (v *View) Attempt() int {
	v.table.mu.RLock()
	defer v.table.mu.RUnlock()
	return v.table.attempts
}

// Tasks gives the spooled tasks.
func (v *View) Tasks() *Tasks { return &Tasks{v.root, v.table, &v.files} }

// Episode reads an episode's line and checks it against its checksum.
func (v *View) Episode(ref Ref) ([]byte, error) {
	if ref.File != TracesFile && ref.File != ErroredFile || ref.Len < 0 || ref.Len > maxEpisode {
		return nil, fmt.Errorf("journal: episode: no such place: %+v", ref)
	}
	f, err := v.files.get(v.root, ref.File)
	if err != nil {
		return nil, fmt.Errorf("journal: episode: %w", err)
	}
	b := make([]byte, ref.Len)
	if _, err := f.ReadAt(b, ref.Off); err != nil {
		return nil, fmt.Errorf("journal: episode: %w", err)
	}
	if got := crc32.Checksum(b, castagnoli()); got != ref.CRC {
		return nil, &CorruptError{File: ref.File, Err: fmt.Errorf("episode at byte %d: crc32c %08x, want %08x", ref.Off, got, ref.CRC)}
	}
	return b, nil
}

// Finishes reads the finish lines of all tries, in the order in which they were committed.
func (v *View) Finishes() iter.Seq2[Finish, error] {
	return func(yield func(Finish, error) bool) {
		_, _, err := eachLine(v.root, JournalFile, -1, func(l *lineReader, line []byte) error {
			r, err := parseRecord(line)
			if err != nil {
				return l.corrupt(err)
			}
			if r.T == recFinish && !yield(r.Finish, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(Finish{}, err)
		}
	}
}

// Partials reads partial.jsonl.
func (v *View) Partials() iter.Seq2[Partial, error] {
	return func(yield func(Partial, error) bool) {
		if err := v.flush(); err != nil {
			yield(Partial{}, err)
			return
		}
		_, _, err := eachLine(v.root, PartialFile, -1, func(l *lineReader, line []byte) error {
			var p Partial
			if err := json.Unmarshal(line, &p); err != nil {
				return l.corrupt(err)
			}
			if !yield(p, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(Partial{}, err)
		}
	}
}

// Summary reads summary.json; fs.ErrNotExist when the run has none, because its last attempt has not
// ended or was killed.
func (v *View) Summary() (*Summary, error) { return readSummary(v.root) }

// ReadSummary reads summary.json of a run and nothing else; errors are those of [View.Summary].
func ReadSummary(dir string) (*Summary, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("journal: read summary: %w", err)
	}
	defer root.Close()
	return readSummary(root)
}

func readSummary(root *os.Root) (*Summary, error) {
	raw, err := root.ReadFile(SummaryFile)
	if err != nil {
		return nil, fmt.Errorf("journal: read summary: %w", err)
	}
	var s Summary
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, &CorruptError{File: SummaryFile, Err: err}
	}
	return &s, nil
}

// LogDir is the directory of the last attempt's logs.
func (v *View) LogDir() string {
	return filepath.Join(v.dir, LogsDir, attemptName(v.Attempt()))
}

func attemptName(n int) string { return fmt.Sprintf("attempt_%d", n) }

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
