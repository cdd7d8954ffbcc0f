package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wevalr/wevalr/host/failure"
)

// ErrClosed is what a closed [Run] says.
var ErrClosed = errors.New("journal: run is closed")

// DiskError is a write that the disk refused (full, broken, read-only). It is final for its Run.
type DiskError struct {
	Op, File string
	Err      error
}

func (e *DiskError) Error() string { return fmt.Sprintf("journal: %s %s: %v", e.Op, e.File, e.Err) }
func (e *DiskError) Unwrap() error { return e.Err }

// Failure makes it host/disk.
func (e *DiskError) Failure() *failure.Failure {
	return failure.New(failure.Host, "disk", "%s %s: %v", e.Op, e.File, e.Err)
}

// CorruptError is a complete line (from 1; 0 where no line is meant) that is not what was written.
type CorruptError struct {
	File string
	Line int
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal: %s:%d: %v", e.File, e.Line, e.Err)
}
func (e *CorruptError) Unwrap() error { return e.Err }

// LockedError is another process (PID; 0 when it cannot be read) that writes this run.
type LockedError struct {
	Dir string
	PID int
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("journal: %s: is being written by process %d", e.Dir, e.PID)
}

// StateError is a record that does not fit what the run knows: an unknown task, a second finish.
type StateError struct {
	Key        string
	Index, Try int
	Why        string
}

func (e *StateError) Error() string {
	return fmt.Sprintf("journal: rollout %s[%d] try %d: %s", e.Key, e.Index, e.Try, e.Why)
}

// TaskSetError is a task set that is not the run's, or a longer one: the first difference.
type TaskSetError struct {
	Task int // ordinal from 0
	Key  string
	Why  string
}

func (e *TaskSetError) Error() string {
	return fmt.Sprintf("journal: task %d (%s): %s", e.Task, e.Key, e.Why)
}

// NotFoundError is a reference that no run answers to.
type NotFoundError struct{ Root, Ref string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("journal: find run %q: none in %s", e.Ref, e.Root)
}

// AmbiguousError is a reference that is the beginning of several ids.
type AmbiguousError struct {
	Ref  string
	Dirs []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("journal: find run %q: %d match: %s", e.Ref, len(e.Dirs), strings.Join(e.Dirs, ", "))
}
