package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slowEval answers a sum after a while; four at a time.
func slowEval(t *testing.T, latency string) string {
	t.Helper()
	return evalFile(t, fmt.Sprintf(`
version = 1
name    = "slow"
[tasks]
plugin       = "arith"
num_tasks    = 6
num_rollouts = 4
[[score]]
plugin = "arith"
[model]
name    = "offline/demo"
options = { latency = %q }
[server]
stop_grace = "1s"
[run]
max_concurrent = 4
[[plugin]]
name   = "arith"
source = "$REPO/plugins/arith"
`, latency))
}

// startSlow starts the run and waits until n rollouts are on their way.
func startSlow(t *testing.T, dir string, n int) *process {
	t.Helper()
	p := start(t, dir, "run", "eval.toml", "-o", "out")
	glob := filepath.Join(dir, "out", "slow", "*", "journal.jsonl")
	if got := awaitMatches(n, regexp.MustCompile(`"t":"dispatch"`), glob); got < n {
		t.Fatalf("dispatched: got %d want %d\n%s", got, n, p.stderr.String())
	}
	return p
}

func (p *process) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func TestInterrupt_Once_Drains(t *testing.T) {
	t.Parallel()
	dir := slowEval(t, "300ms")
	p := startSlow(t, dir, 6) // the second four are under way
	p.signal(t, os.Interrupt)
	p.stderr.await(t, "interrupted: ")
	if code := p.exit(t); code != 130 {
		t.Fatalf("exit code: got %d want 130\n%s", code, p.stderr.String())
	}
	run := runDir(t, filepath.Join(dir, "out"))
	s := readSummary(t, run)
	if s.Completed < 6 || s.Completed > 12 || s.Cancelled+s.Errors > 0 || s.NeverRun != 24-s.Completed || s.ExitCode != 130 {
		t.Errorf("what was in flight was to finish, and nothing more: got %+v", s)
	}
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "wevalr resume "+s.Run.Dir) {
		t.Errorf("the last line was to be the command that goes on; got %q", last)
	}
	serversGone(t, run, 3*time.Second)
	wevalr(t, dir, 0, "resume", run)
	if s := readSummary(t, run); s.Completed != 24 || s.Owed != 0 || s.Run.Attempts != 2 {
		t.Errorf("after resume: got %+v", s)
	}
}

func TestInterrupt_Twice_Cancels(t *testing.T) {
	t.Parallel()
	dir := slowEval(t, "1h")
	p := startSlow(t, dir, 4)
	p.signal(t, os.Interrupt)
	p.stderr.await(t, "interrupted: nothing new")
	p.signal(t, os.Interrupt)
	if code := p.exit(t); code != 130 {
		t.Fatalf("exit code: got %d want 130\n%s", code, p.stderr.String())
	}
	cancelledRun(t, dir, 130)
}

func TestInterrupt_Term_CancelsAtOnce(t *testing.T) {
	t.Parallel()
	dir := slowEval(t, "1h")
	p := startSlow(t, dir, 4)
	p.signal(t, syscall.SIGTERM)
	if code := p.exit(t); code != 143 {
		t.Fatalf("exit code: got %d want 143\n%s", code, p.stderr.String())
	}
	cancelledRun(t, dir, 143)
}

// cancelledRun checks a run of which four rollouts were in flight when it was told to end.
func cancelledRun(t *testing.T, dir string, code int) {
	t.Helper()
	run := runDir(t, filepath.Join(dir, "out"))
	s := readSummary(t, run)
	if s.Cancelled != 4 || s.NeverRun != 20 || s.Completed+s.Errors > 0 || s.Owed != 24 || s.ExitCode != code {
		t.Errorf("four were in flight: got %+v", s)
	}
	ends := map[string]int{}
	for _, e := range journalOf(t, run) {
		if e.T == "finish" {
			ends[e.Outcome]++
		}
	}
	if len(ends) != 1 || ends["cancelled"] != 4 {
		t.Errorf("finish lines: got %v want 4 cancelled", ends)
	}
	serversGone(t, run, 3*time.Second)
}

// Three interrupts end wevalr even while the env-server answers nothing, not even a cancel; the server
// does not outlive it.
func TestInterrupt_Thrice_LeavesAtOnce(t *testing.T) {
	t.Parallel()
	dir := evalFile(t, `
version = 1
name    = "slow"
[tasks]
plugin = "arith"
[model]
name = "sum"
[server]
command      = ["testserver", "{address}"]
cancel_grace = "10m"
stop_grace   = "1s"
[run]
max_concurrent = 2
[[plugin]]
name   = "arith"
source = "$REPO/plugins/arith"
`)
	if err := os.WriteFile(filepath.Join(dir, "fate"), []byte("stuck after 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startSlow(t, dir, 3)
	p.signal(t, os.Interrupt)
	p.stderr.await(t, "interrupted: nothing new")
	p.signal(t, os.Interrupt)
	p.stderr.await(t, "is cancelled; interrupt again")
	p.signal(t, os.Interrupt)
	if code := p.exit(t); code != 130 {
		t.Fatalf("exit code: got %d want 130\n%s", code, p.stderr.String())
	}
	run := runDir(t, filepath.Join(dir, "out"))
	serversGone(t, run, 3*time.Second)
	if err := os.WriteFile(filepath.Join(dir, "fate"), []byte("live"), 0o600); err != nil {
		t.Fatal(err)
	}
	wevalr(t, dir, 3, "resume", run) // nothing scores, so 3; but everything is done
	if s := readSummary(t, run); s.Completed != 50 {
		t.Errorf("after resume: got %+v", s)
	}
}
