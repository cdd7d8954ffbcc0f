package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestSpoolTasks_ReadBack(t *testing.T) {
	r := newRun(t, 3)
	tasks := r.Tasks()
	raw, key, err := tasks.Task(1)
	if err != nil || key != "t/1" || string(raw) != `{"key":"t/1","data":{"n":1}}` {
		t.Errorf("got %s, %q, %v", raw, key, err)
	}
	if i, ok := tasks.Ordinal("t/2"); !ok || i != 2 || tasks.Key(2) != "t/2" || tasks.Len() != 3 {
		t.Errorf("ordinal of t/2: got %d, %v", i, ok)
	}
	// python: sha256 of the concatenation of f"{key}\0{sha256(task)}\n"
	if got, want := tasks.Hash(), "ef8f3947641124918a481066f34edad1c2c0d4d20e6e2c79097be281a49401f8"; got != want {
		t.Errorf("hash: got %s, want %s", got, want)
	}
}

func TestSpoolTasks_Resume(t *testing.T) {
	r := newRun(t, 3)
	hash := r.Tasks().Hash()
	r = reopen(t, r)
	same, err := r.SpoolTasks(testTasks(3))
	if err != nil || same.Hash() != hash || same.Len() != 3 {
		t.Fatalf("the same tasks: got %v", err)
	}
	grown, err := r.SpoolTasks(testTasks(5))
	if err != nil || grown.Len() != 5 || grown.Hash() == hash {
		t.Fatalf("more tasks: got %v", err)
	}
	if raw, key, err := grown.Task(4); err != nil || key != "t/4" || len(raw) == 0 {
		t.Errorf("a new task: got %s, %q, %v", raw, key, err)
	}
	r = reopen(t, r)
	if r.Tasks().Hash() != grown.Hash() {
		t.Error("the grown set is another one after a resume")
	}
}

func TestSpoolTasks_Refuses(t *testing.T) {
	boom := errors.New("boom")
	with := func(at int, task Task, err error) func(func(Task, error) bool) {
		return func(yield func(Task, error) bool) {
			i := 0
			for t := range testTasks(4) {
				if i == at {
					t = task
					if err != nil {
						yield(t, err)
						return
					}
				}
				if !yield(t, nil) {
					return
				}
				i++
			}
		}
	}
	for name, c := range map[string]struct {
		seq  func(func(Task, error) bool)
		task int
	}{
		"fewer":         {testTasks(2), 2},
		"another key":   {with(1, Task{"other", []byte("{}")}, nil), 1},
		"changed":       {with(2, Task{"t/2", []byte("{}")}, nil), 2},
		"twice":         {with(3, Task{"t/0", []byte("{}")}, nil), 3},
		"no key":        {with(3, Task{"", []byte("{}")}, nil), 3},
		"no JSON":       {with(3, Task{"t/3", []byte("{")}, nil), 3},
		"source failed": {with(3, Task{}, boom), -1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, 3)
			_, err := r.SpoolTasks(c.seq)
			var bad *TaskSetError
			if c.task < 0 && !errors.Is(err, boom) || c.task >= 0 && (!errors.As(err, &bad) || bad.Task != c.task) {
				t.Fatalf("got %v, want an error at task %d", err, c.task)
			}
			if n := r.Tasks().Len(); n != 3 {
				t.Errorf("got %d tasks, want 3", n)
			}
		})
	}
}

func TestTasks_Task_Changed(t *testing.T) {
	r := newRun(t, 2)
	path := filepath.Join(r.Dir(), TasksFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-5] = '7' // {"n":1} → {"n":7}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	var bad *CorruptError
	if _, _, err := r.Tasks().Task(1); !errors.As(err, &bad) || bad.Line != 2 {
		t.Errorf("got %v, want *CorruptError in line 2", err)
	}
}
