package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

const (
	// maxBatch is how many records share a sync.
	maxBatch = 64
	// scoreSync is after how many score lines scores.jsonl is synced.
	scoreSync = 4096
)

// target is the file of an entry.
type target uint8

const (
	toJournal target = iota
	toScores
	toPartial
)

// entry is one line on its way to the disk.
type entry struct {
	to   target
	line []byte // without its newline; nil: only wait until what came before is written
	sync bool   // the journal is synced before done is answered
	done chan error

	// Of a finish with an episode:
	episode []byte
	file    string
	crc     uint32
	ref     Ref // filled in
}

// writable says why nothing can be written any more. The caller holds mu.
func (r *Run) writable() error {
	if r.closed {
		return ErrClosed
	}
	return r.Err()
}

// send puts an entry into the queue. A free place wins over an ended ctx.
func (r *Run) send(ctx context.Context, e *entry) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if err := r.writable(); err != nil {
		return err
	}
	select {
	case r.queue <- e:
		return nil
	default:
	}
	select {
	case r.queue <- e:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// queueLine sends an entry that nobody waits for.
func (r *Run) queueLine(e *entry) error { return r.send(context.Background(), e) }

// drain waits until what was queued before is written. Once the disk takes nothing more that is nothing:
// what stands in the files can still be read.
func (r *Run) drain() error {
	e := &entry{to: toScores, done: make(chan error, 1)}
	err := r.send(context.Background(), e)
	if err == nil {
		err = <-e.done
	}
	if _, ok := errors.AsType[*DiskError](err); ok {
		return nil
	}
	return err
}

// atOnce writes a line of the journal beside whatever is being committed. It survives the end of the
// process; the next sync of the journal makes it durable.
func (r *Run) atOnce(line any) error {
	raw, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	r.mu.RLock() // Close waits, the file stays open
	defer r.mu.RUnlock()
	if err := r.writable(); err != nil {
		return err
	}
	if err := r.journal.append(raw, []byte("\n")); err != nil {
		return r.sealing(err)
	}
	return nil
}

// writer owns the append-only files.
type writer struct {
	run      *Run
	files    map[string]*tail
	unsynced int // score lines
}

// tail is the end of a file. The owner of the files writes to it, and to the journal's Dispatch too.
type tail struct {
	name string
	f    appender

	mu  sync.Mutex // held by append
	w   *bufio.Writer
	off int64 // where the next line begins, as far as this process wrote
}

func (w *writer) open(name string) (*tail, error) {
	if t := w.files[name]; t != nil {
		return t, nil
	}
	size, err := fileSize(w.run.root, name)
	if err != nil {
		return nil, err
	}
	f, err := w.run.disk.Append(name)
	if err != nil {
		return nil, err
	}
	t := &tail{name: name, f: f, w: bufio.NewWriterSize(f, 64<<10), off: size}
	w.files[name] = t
	return t, nil
}

func (t *tail) add(parts ...[]byte) error {
	for _, p := range parts {
		n, err := t.w.Write(p)
		t.off += int64(n)
		if err != nil {
			return &DiskError{"write", t.name, err}
		}
	}
	return nil
}

// append adds and writes at once; it may be called beside a sync.
func (t *tail) append(parts ...[]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.add(parts...); err != nil {
		return err
	}
	return t.flush()
}

func (t *tail) flush() error {
	if err := t.w.Flush(); err != nil {
		return &DiskError{"write", t.name, err}
	}
	return nil
}

func (t *tail) sync() error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.fsync()
}

func (t *tail) fsync() error {
	if err := t.f.Sync(); err != nil {
		return &DiskError{"sync", t.name, err}
	}
	return nil
}

// loop commits what is queued until the queue is closed. It waits for the first entry only: while a
// batch is being synced the next one gathers.
func (w *writer) loop() {
	defer close(w.run.done)
	batch := make([]*entry, 0, maxBatch)
	for e := range w.run.queue {
		batch = append(batch[:0], e)
	gather:
		for len(batch) < maxBatch {
			select {
			case e, ok := <-w.run.queue:
				if !ok {
					break gather
				}
				batch = append(batch, e)
			default:
				break gather
			}
		}
		w.commit(batch)
		clear(batch) // lets go of the episodes
	}
	w.finish()
}

func (w *writer) commit(batch []*entry) {
	answer := func(e *entry, err error) {
		if e.done != nil {
			e.done <- err
		}
	}
	err := w.run.Err()
	if err == nil {
		err = w.run.sealing(w.durable(batch))
	}
	for _, e := range batch {
		if e.to == toJournal {
			answer(e, err)
		}
	}
	if err == nil {
		err = w.run.sealing(w.loose(batch))
	}
	for _, e := range batch {
		if e.to != toJournal {
			answer(e, err)
		}
	}
}

// sealing makes a failed write the last one.
func (r *Run) sealing(err error) error {
	var disk *DiskError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &disk):
		return r.seal(disk)
	}
	return r.seal(&DiskError{"write", ".", err})
}

// durable writes the episodes, syncs them, and only then their lines in the journal.
func (w *writer) durable(batch []*entry) error {
	touched := map[string]*tail{}
	for _, e := range batch {
		if len(e.episode) == 0 {
			continue
		}
		t, err := w.open(e.file)
		if err != nil {
			return err
		}
		touched[e.file] = t
		e.ref = Ref{e.file, t.off, int64(len(e.episode)), e.crc}
		if err := t.add(e.episode, []byte("\n")); err != nil {
			return err
		}
	}
	for _, t := range touched {
		if err := t.sync(); err != nil {
			return err
		}
	}
	j, err := w.open(JournalFile)
	if err != nil {
		return err
	}
	var lines [][]byte
	sync := false
	for _, e := range batch {
		if e.to == toJournal {
			lines = append(lines, e.journalLine()...)
			sync = sync || e.sync
		}
	}
	if err := j.append(lines...); err != nil || !sync {
		return err
	}
	return j.fsync()
}

// journalLine is the entry's line, with its episode's place when it has one.
func (e *entry) journalLine() [][]byte {
	if len(e.episode) == 0 {
		return [][]byte{e.line, []byte("\n")}
	}
	b := append(make([]byte, 0, 128), `,"episode":{"file":"`...)
	b = append(b, e.ref.File...)
	b = strconv.AppendInt(append(b, `","off":`...), e.ref.Off, 10)
	b = strconv.AppendInt(append(b, `,"len":`...), e.ref.Len, 10)
	b = strconv.AppendUint(append(b, `,"crc32c":`...), uint64(e.ref.CRC), 10)
	return [][]byte{e.line[:len(e.line)-1], append(b, "}}\n"...)}
}

// loose writes scores and partial episodes: written at once, synced now and then.
func (w *writer) loose(batch []*entry) error {
	for _, e := range batch {
		if e.to == toJournal || e.line == nil {
			continue
		}
		name := ScoresFile
		if e.to == toPartial {
			name = PartialFile
		}
		t, err := w.open(name)
		if err != nil {
			return err
		}
		if err := t.add(e.line, []byte("\n")); err != nil {
			return err
		}
		w.unsynced++
	}
	if w.unsynced >= scoreSync {
		return w.syncLoose()
	}
	for _, name := range []string{ScoresFile, PartialFile} {
		if t := w.files[name]; t != nil {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) syncLoose() error {
	w.unsynced = 0
	for _, name := range []string{ScoresFile, PartialFile} {
		if t := w.files[name]; t != nil {
			if err := t.sync(); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish syncs and closes the files.
func (w *writer) finish() {
	if w.run.Err() == nil {
		_ = w.run.sealing(w.syncLoose()) // Close reports it
	}
	for _, t := range w.files {
		if err := t.f.Close(); err != nil && w.run.Err() == nil {
			_ = w.run.sealing(&DiskError{"close", t.name, err})
		}
	}
}
