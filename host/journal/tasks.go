package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Task is one task as it is spooled: its key and its JSON.
type Task struct {
	Key  string
	JSON []byte
}

// taskLine is a line of tasks.jsonl. SHA256 is that of Task's bytes as they stand in the line.
type taskLine struct {
	SHA256 string          `json:"sha256"`
	Key    string          `json:"key"`
	Task   json.RawMessage `json:"task"`
}

// parseTask reads a line of tasks.jsonl and checks its hash, which vouches for the task's own bytes.
func parseTask(line []byte) (*taskLine, error) {
	t, ok := cutTask(bytes.TrimSuffix(line, []byte("\n")))
	if !ok { // somebody else's spelling of the same
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, err
		}
	}
	if t.Key == "" {
		return nil, errors.New("no key")
	}
	if sum := hexSum(t.Task); sum != t.SHA256 {
		return nil, fmt.Errorf("task %s: sha256 %s, want %s", t.Key, sum, t.SHA256)
	}
	return &t, nil
}

// cutTask takes a line apart as [spool.add] wrote it, without reading the task: a run reads each task
// once a rollout.
func cutTask(line []byte) (t taskLine, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"sha256":"`))
	if !ok || len(rest) < 64 {
		return t, false
	}
	sum := rest[:64]
	key, ok := bytes.CutPrefix(rest[64:], []byte(`","key":"`))
	end := bytes.IndexAny(key, `"\`)
	if !ok || end < 0 {
		return t, false
	}
	task, ok := bytes.CutPrefix(key[end:], []byte(`","task":`))
	if !ok || len(task) < 2 || task[len(task)-1] != '}' {
		return t, false
	}
	return taskLine{SHA256: string(sum), Key: string(key[:end]), Task: task[:len(task)-1]}, true
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Tasks is the task set of a run. Keys and offsets are in memory, tasks on disk.
type Tasks struct {
	root  *os.Root
	table *table
	files *openFiles
}

// Len is the number of tasks.
func (t *Tasks) Len() int {
	t.table.mu.RLock()
	defer t.table.mu.RUnlock()
	return len(t.table.keys)
}

// Key is the key of a task ordinal in [0, Len).
func (t *Tasks) Key(i int) string {
	t.table.mu.RLock()
	defer t.table.mu.RUnlock()
	return t.table.keys[i]
}

// Ordinal finds a task by its key.
func (t *Tasks) Ordinal(key string) (int, bool) {
	t.table.mu.RLock()
	defer t.table.mu.RUnlock()
	i, ok := t.table.ordinals[key]
	return int(i), ok
}

// Hash identifies the set: sha256 over `key NUL sha256 LF` of each task, in order.
func (t *Tasks) Hash() string { return t.table.setHash() }

// Task reads the task of an ordinal in [0, Len): its JSON, checked against its hash, and its key.
func (t *Tasks) Task(i int) (raw []byte, key string, err error) {
	t.table.mu.RLock()
	key, off, end := t.table.keys[i], t.table.offs[i], t.table.offs[i+1]
	t.table.mu.RUnlock()
	f, err := t.files.get(t.root, TasksFile)
	if err != nil {
		return nil, key, fmt.Errorf("journal: task %s: %w", key, err)
	}
	line := make([]byte, end-off)
	if _, err := f.ReadAt(line, off); err != nil {
		return nil, key, fmt.Errorf("journal: task %s: %w", key, err)
	}
	task, err := parseTask(line)
	if err != nil {
		return nil, key, &CorruptError{TasksFile, i + 1, err}
	}
	return task.Task, key, nil
}

// loadTasks indexes tasks.jsonl and gives where its last complete line ends.
func loadTasks(root *os.Root, t *table) (int64, error) {
	end, _, err := eachLine(root, TasksFile, -1, func(l *lineReader, line []byte) error {
		task, err := parseTask(line)
		if err != nil {
			return l.corrupt(err)
		}
		if _, twice := t.ordinals[task.Key]; twice {
			return l.corrupt(fmt.Errorf("task %s: twice in the set", task.Key))
		}
		t.addTask(task.Key, task.SHA256, l.off)
		return nil
	})
	return end, err
}

// SpoolTasks writes the task set, before the first dispatch. What the run has already must be an equal
// prefix of it; the rest is appended (-n has grown). It is durable when this returns; after an error,
// what came before it is kept and may be continued. Not to be called twice at the same time.
//
// # Errors
//
// *[TaskSetError] for the first task that differs, is missing, or has a key that was seen before; the
// first error of the sequence, as it is; *[DiskError].
func (r *Run) SpoolTasks(tasks iter.Seq2[Task, error]) (*Tasks, error) {
	old, err := r.root.Open(TasksFile)
	if err != nil {
		return nil, fmt.Errorf("journal: spool tasks: %w", err)
	}
	defer old.Close()
	f, err := r.disk.Append(TasksFile)
	if err != nil {
		return nil, err
	}
	s := &spool{table: r.table, had: r.Tasks().Len(), out: bufio.NewWriterSize(f, 256<<10)}
	s.old = newLineReader(io.LimitReader(old, s.table.offs[s.had]), TasksFile)
	err = s.all(tasks)
	if flush := errors.Join(s.out.Flush(), f.Sync(), f.Close()); flush != nil {
		return nil, r.seal(&DiskError{"write", TasksFile, flush})
	}
	if err != nil {
		return nil, err
	}
	return r.Tasks(), nil
}

// spool compares tasks with the old lines as long as there are some, and writes the others.
type spool struct {
	table *table
	had   int
	n     int
	old   *lineReader
	out   *bufio.Writer
	buf   bytes.Buffer
}

func (s *spool) all(tasks iter.Seq2[Task, error]) error {
	for task, err := range tasks {
		if err == nil {
			err = s.add(task)
		}
		if err != nil {
			return err
		}
		s.n++
	}
	if s.n < s.had {
		return &TaskSetError{s.n, s.table.keys[s.n], fmt.Sprintf("missing: the run has %d tasks, now there are %d", s.had, s.n)}
	}
	return nil
}

func (s *spool) add(task Task) error {
	s.buf.Reset()
	if err := json.Compact(&s.buf, task.JSON); err != nil {
		return &TaskSetError{s.n, task.Key, err.Error()}
	}
	sum := hexSum(s.buf.Bytes())
	if s.n < s.had {
		return s.compare(task.Key, sum)
	}
	if task.Key == "" {
		return &TaskSetError{s.n, task.Key, "no key"}
	}
	if _, twice := s.table.ordinals[task.Key]; twice {
		return &TaskSetError{s.n, task.Key, "twice in the set"}
	}
	key, err := json.Marshal(task.Key)
	if err != nil {
		return &TaskSetError{s.n, task.Key, err.Error()}
	}
	n, err := fmt.Fprintf(s.out, `{"sha256":"%s","key":%s,"task":%s}`+"\n", sum, key, s.buf.Bytes())
	if err != nil {
		return &DiskError{"write", TasksFile, err}
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.addTask(task.Key, sum, s.table.offs[s.n]+int64(n))
	return nil
}

func (s *spool) compare(key, sum string) error {
	line, err := s.old.next()
	if err != nil {
		return fmt.Errorf("journal: spool tasks: %w", err)
	}
	was, err := parseTask(line)
	switch {
	case err != nil:
		return s.old.corrupt(err)
	case was.Key != key:
		return &TaskSetError{s.n, key, "the run has task " + was.Key + " here"}
	case was.SHA256 != sum:
		return &TaskSetError{s.n, key, "changed: sha256 " + sum + ", the run has " + was.SHA256}
	}
	return nil
}
