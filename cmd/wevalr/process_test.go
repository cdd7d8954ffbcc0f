package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of these tests.
const patience = 40 * time.Second

// process is one wevalr that was started by a test.
type process struct {
	*exec.Cmd
	stdout bytes.Buffer
	stderr said
	done   chan struct{}
}

// said is what a process wrote so far; it can be waited for.
type said struct {
	mu   sync.Mutex
	text []byte
	more chan struct{} // closed and replaced at every write
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	if s.more != nil {
		close(s.more)
		s.more = nil
	}
	return len(p), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// await waits until text was said.
func (s *said) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		found := bytes.Contains(s.text, []byte(text))
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-deadline.C:
			t.Fatalf("not said in %v: %q; got\n%s", patience, text, s)
		}
	}
}

// start starts wevalr in dir. It is killed at the test's end, if it still runs.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startEnv(t, dir, nil, args...)
}

// startEnv is start with more variables.
func startEnv(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command("wevalr", args...), done: make(chan struct{})}
	p.Env = append(os.Environ(), env...)
	p.Dir, p.Stdout, p.Stderr = dir, &p.stdout, &p.stderr
	p.begin(t)
	return p
}

// begin starts what is to be started.
func (p *process) begin(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
	})
}

// exit waits for the process's end and gives its exit code, -1 when a signal ended it.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.Process.Signal(syscall.SIGQUIT) // its goroutines go to stderr
		<-p.done
		t.Fatalf("%v did not end in %v:\n%s", p.Args, patience, p.stderr.String())
	}
	return p.ProcessState.ExitCode()
}

// wevalr runs one command line to its end.
func wevalr(t *testing.T, dir string, want int, args ...string) *process {
	t.Helper()
	p := start(t, dir, args...)
	if code := p.exit(t); code != want {
		t.Fatalf("wevalr %s: exit code got %d want %d\n%s%s", strings.Join(args, " "), code, want, p.stdout.String(), p.stderr.String())
	}
	return p
}

// summary is what the tests read of summary.json.
type summary struct {
	Run struct {
		ID, Dir  string
		Attempts int
	}
	Planned, Completed, Limit, Errors, Cancelled, Owed, Retried int

	NeverRun int              `json:"never_run"`
	ExitCode int              `json:"exit_code"`
	Scores   map[string]score `json:"scores"`
}

type score struct {
	Mean, SE                float64
	CI                      [2]float64
	CIMethod                string `json:"ci_method"`
	Tasks, Rollouts, Scored int
	Null, Missing           int
	Coverage                float64
	PassAt                  map[string]float64 `json:"pass_at"`
}

func readSummary(t *testing.T, dir string) summary {
	t.Helper()
	var s summary
	readJSON(t, filepath.Join(dir, "summary.json"), &s)
	return s
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// readLines decodes a JSONL file.
func readLines[T any](t *testing.T, path string) []T {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	dec := json.NewDecoder(bytes.NewReader(b))
	for dec.More() {
		var v T
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%s: line %d: %v", path, len(out)+1, err)
		}
		out = append(out, v)
	}
	return out
}

// event is a line of journal.jsonl.
type event struct {
	T, Key, Event, Outcome string
	Index, Try, PID        int
}

func journalOf(t *testing.T, dir string) []event {
	t.Helper()
	return readLines[event](t, filepath.Join(dir, "journal.jsonl"))
}

// runDir is the one run directory below root.
func runDir(t *testing.T, root string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(root, "*", "*", "run.json"))
	if len(found) != 1 {
		t.Fatalf("run directories in %s: got %d want 1", root, len(found))
	}
	return filepath.Dir(found[0])
}

// serversGone checks that no env-server of the run's journal lives longer than within.
func serversGone(t *testing.T, dir string, within time.Duration) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	n := 0
	for _, e := range journalOf(t, dir) {
		if e.T != "server" || e.PID == 0 {
			continue
		}
		n++
		for alive(e.PID) {
			if time.Now().After(deadline) {
				t.Fatalf("env-server %d still lives %v later", e.PID, within)
			}
			<-tick.C
		}
	}
	if n == 0 {
		t.Fatal("the journal names no server")
	}
}

// alive reports whether a process runs; one that nobody has waited for yet does not.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || !hasProc()
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z'
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

// evalFile writes an eval file into a new folder and gives the folder.
func evalFile(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	text = strings.ReplaceAll(text, "$REPO", repoRoot(t))
	if err := os.WriteFile(filepath.Join(dir, "eval.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
