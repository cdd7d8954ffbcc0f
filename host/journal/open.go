package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// Create makes the directory root/name/id of a new run, locks it, and writes run.json and config.toml.
// It is the run's first attempt. Name matches [a-z0-9][a-z0-9._-]{0,62}; the id is made from now.
//
// # Errors
//
// A name that does not match; *[DiskError].
func Create(root, name string, now time.Time, hdr Identity) (*Run, error) {
	return create(root, name, now, hdr, func(r *os.Root) disk { return osDisk{r} })
}

// Open continues a run: it locks it, moves what a crash left behind to recovered/, removes
// summary.json, and begins the next attempt. Whether the run may be continued is for the caller to ask
// first: [ReadIdentity] and [Identity.Diff].
//
// # Errors
//
// *[LockedError]; *[CorruptError] for a complete line that is broken: nothing was changed then;
// *[DiskError].
func Open(dir string) (*Run, error) {
	return open(dir, func(r *os.Root) disk { return osDisk{r} })
}

func create(root, name string, now time.Time, hdr Identity, on func(*os.Root) disk) (*Run, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("journal: create run: name %q: want [a-z0-9][a-z0-9._-]{0,62}", name)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, &DiskError{"make", root, err}
	}
	top, err := os.OpenRoot(root)
	if err != nil {
		return nil, &DiskError{"open", root, err}
	}
	defer top.Close()
	hdr.Format, hdr.Name, hdr.Created = identityFormat, name, now.UTC()
	for {
		hdr.ID = newID(now)
		err := errors.Join(top.MkdirAll(name, 0o755), top.Mkdir(filepath.Join(name, hdr.ID), 0o755))
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, &DiskError{"make", filepath.Join(name, hdr.ID), err}
		}
	}
	r, err := fill(filepath.Join(root, name, hdr.ID), hdr, now, on)
	if err != nil {
		return nil, errors.Join(err, top.RemoveAll(filepath.Join(name, hdr.ID)))
	}
	for _, d := range []string{".", name} {
		if err := syncSub(top, d); err != nil {
			return nil, errors.Join(err, r.Close(CloseEvent{At: now, Reason: "not created"}))
		}
	}
	return r, nil
}

// fill makes a run of an empty directory.
func fill(dir string, hdr Identity, now time.Time, on func(*os.Root) disk) (*Run, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &DiskError{"open", dir, err}
	}
	v := &View{dir: dir, root: root, identity: hdr, table: newTable()}
	r := &Run{View: v, disk: on(root)}
	if r.lock, err = lockDir(dir, root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	raw, err := json.MarshalIndent(hdr, "", "  ")
	if err == nil {
		err = r.replace(ConfigFile, hdr.TOML)
	}
	if err == nil {
		err = r.replace(RunFile, append(raw, '\n'))
	}
	if err == nil {
		err = r.begin(now)
	}
	if err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

// SetConfig replaces config.toml: the eval as this attempt resolved it, where -n or -r have grown or
// something operational has changed. What a later attempt starts from is then what this one ran.
func (r *Run) SetConfig(toml []byte) error {
	r.identity.TOML = toml
	return r.replace(ConfigFile, toml)
}

func (r *Run) replace(name string, content []byte) error {
	return r.disk.Replace(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func open(dir string, on func(*os.Root) disk) (*Run, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("journal: open run: %w", err)
	}
	defer root.Close()
	if _, err := readIdentity(root); err != nil {
		return nil, err // no run: leave no lock in it
	}
	lock, err := lockDir(dir, root)
	if err != nil {
		return nil, err
	}
	v, t, err := load(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	r := &Run{View: v, disk: on(v.root), lock: lock}
	if err := r.recover(t); err != nil {
		return nil, errors.Join(err, r.release())
	}
	if err := r.begin(time.Now()); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

// begin starts the next attempt: its log directory, the owner of the files, the line that says so.
func (r *Run) begin(now time.Time) error {
	n := r.table.attempts + 1
	if err := r.root.MkdirAll(filepath.Join(LogsDir, attemptName(n)), 0o755); err != nil {
		return &DiskError{"make", LogsDir, err}
	}
	// A convenience, and not every file system has links.
	_ = renameio.SymlinkRoot(r.root, attemptName(n), filepath.Join(LogsDir, "latest"))
	if err := r.root.Remove(SummaryFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &DiskError{"remove", SummaryFile, err}
	}
	w := &writer{run: r, files: map[string]*tail{}}
	for _, name := range []string{JournalFile, TracesFile, ErroredFile, ScoresFile} {
		if _, err := w.open(name); err != nil {
			return errors.Join(err, w.abandon())
		}
	}
	if err := errors.Join(r.touch(TasksFile), syncDir(r.root)); err != nil {
		return errors.Join(err, w.abandon())
	}
	line, err := json.Marshal(openLine{head{recOpen, now.UTC()}, n, os.Getpid()})
	if err != nil {
		return errors.Join(err, w.abandon())
	}
	if err := w.durable([]*entry{{to: toJournal, line: line, sync: true}}); err != nil {
		return errors.Join(err, w.abandon())
	}
	r.table.attempts = n
	r.queue, r.done = make(chan *entry, 2*maxBatch), make(chan struct{})
	r.flush, r.journal = r.drain, w.files[JournalFile]
	go w.loop()
	return nil
}

// touch makes a file that may be empty.
func (r *Run) touch(name string) error {
	f, err := r.disk.Append(name)
	if err != nil {
		return err
	}
	return f.Close()
}

// abandon closes files of which nothing more is wanted.
func (w *writer) abandon() error {
	var all error
	for _, t := range w.files {
		all = errors.Join(all, t.f.Close())
	}
	return all
}

func syncSub(top *os.Root, name string) error {
	sub, err := top.OpenRoot(name)
	if err != nil {
		return &DiskError{"sync", name, err}
	}
	defer sub.Close()
	return syncDir(sub)
}
