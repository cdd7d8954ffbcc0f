// Package journal is the run directory: its file formats, what makes them durable, and how a run is
// found and continued.
//
// [Create] begins a run, [Open] its next attempt, [Read] looks at it without a lock. What is finished
// is on disk when [Run.Finish] returns: the episode's line, a sync, the journal's line, a sync. A
// newline is the commit mark. What a crash leaves behind a commit mark is moved to recovered/ and
// noted; a complete line that cannot be read stops with its file and line number, since going on
// would count wrongly. Nothing is deleted.
//
// # Concurrency
//
// All methods of [Run] and [View] are safe for concurrent use. One goroutine owns the append-only
// files ([Run.Dispatch] alone appends its line beside it); it commits what is queued while the previous sync ran, at most 64 records at a time, and
// waits for nothing else. One process writes a run: the lock is a flock, which ends with the process.
//
// # Ownership
//
// Byte slices passed in are not kept after the call returns. Memory: 32 bytes a rollout, and about
// 100 bytes a task (key, offset). Episodes and tasks are read from disk when asked for.
//
// # Cancellation
//
// A context bounds only the wait for a place in the queue. What was accepted is committed: a reply
// that arrived wins over its cancellation.
//
// # Errors
//
// [DiskError] (host/disk) is final: after the first one every write gives it again, and what was
// committed stays readable. [CorruptError], [LockedError], [StateError], [TaskSetError],
// [NotFoundError] and [AmbiguousError] say what they found.
package journal

// The files of a run directory.
const (
	RunFile     = "run.json"
	ConfigFile  = "config.toml"
	TasksFile   = "tasks.jsonl"
	JournalFile = "journal.jsonl"
	TracesFile  = "traces.jsonl"
	ErroredFile = "errored.jsonl"
	PartialFile = "partial.jsonl"
	ScoresFile  = "scores.jsonl"
	SummaryFile = "summary.json"
	RawDir      = "raw"
	RecoverDir  = "recovered"
	LogsDir     = "logs"

	lockFile = "lock"
)
