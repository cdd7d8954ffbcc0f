package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// plainEval is a run of 10 tasks with the demo model, whose numbers do not depend on when it runs.
func plainEval(t *testing.T, more string) string {
	t.Helper()
	return evalFile(t, fmt.Sprintf(`
version = 1
name    = "plain"
[tasks]
plugin       = "arith"
num_tasks    = 10
num_rollouts = 4
[[score]]
plugin = "arith"
[model]
name     = "offline/demo"
options  = { wrong_rate = 0.4 }
sampling = { seed = 3 }
[server]
stop_grace = "1s"
%s
[[plugin]]
name   = "arith"
source = "$REPO/plugins/arith"
`, more))
}

// mounted mounts a small file system at dir/out.
func mounted(t *testing.T, dir, options string) (remount func(options string)) {
	t.Helper()
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := func(options string) error {
		text, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "wevalr-test", out).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
		return nil
	}
	if err := mount(options); err != nil {
		t.Skipf("a file system of its own cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if text, err := exec.Command("umount", out).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, text)
		}
	})
	return func(options string) {
		if err := mount("remount," + options); err != nil {
			t.Fatal(err)
		}
	}
}

// wholeRun is the summary of the same eval, uninterrupted.
func wholeRun(t *testing.T, dir string) summary {
	t.Helper()
	wevalr(t, dir, 0, "run", "eval.toml", "-o", "whole", "--display", "none")
	return readSummary(t, runDir(t, filepath.Join(dir, "whole")))
}

// sameAs resumes a run that was hurt, and compares its numbers.
func sameAs(t *testing.T, dir, run string, want summary) {
	t.Helper()
	wevalr(t, dir, 0, "resume", run, "--display", "none")
	got := readSummary(t, run)
	if !reflect.DeepEqual(got.Scores, want.Scores) || got.Completed != want.Completed || got.Owed != 0 {
		t.Errorf("after resume: got %+v want %+v", got, want)
	}
	for rollout, n := range finished(t, run) {
		if n != 1 {
			t.Errorf("%s was finished %d times", rollout, n)
		}
	}
}

// A disk that is full: the run stops with exit code 3 and the command that goes on, what was committed
// can be read, and with room again a resume ends as if nothing had been. The sizes are chosen to fail at
// every step there is, the first file included.
func TestDisk_Full(t *testing.T) {
	t.Parallel()
	dir := plainEval(t, "")
	want := wholeRun(t, dir)
	remount := mounted(t, dir, "size=4k")
	stopped, resumed := 0, 0
	for kib := 4; kib <= 112; kib += 18 {
		remount(fmt.Sprintf("size=%dk", kib))
		p := start(t, dir, "run", "eval.toml", "-o", "out", "--display", "none")
		code := p.exit(t)
		found, _ := filepath.Glob(filepath.Join(dir, "out", "*", "*", "run.json"))
		if code == 0 {
			t.Logf("it fits into %d KiB", kib)
		} else {
			stopped++
			if text := p.stderr.String(); code != 3 || !strings.Contains(text, "no space left on device") ||
				len(found) > 0 && countFinished(t, filepath.Dir(found[0])) > 0 && !strings.Contains(text, "go on with: wevalr resume") {
				t.Errorf("%d KiB: got exit code %d\n%s", kib, code, text)
			}
		}
		if len(found) > 0 {
			run := filepath.Dir(found[0])
			wevalr(t, dir, 0, "show", run)
			done := countFinished(t, run)
			remount("size=16m")
			sameAs(t, dir, run, want)
			if after := countFinished(t, run); after != want.Completed || done > after {
				t.Errorf("%d KiB: %d finished, then %d", kib, done, after)
			}
			resumed++
		}
		if err := os.RemoveAll(filepath.Join(dir, "out", "plain")); err != nil {
			t.Fatal(err)
		}
	}
	if stopped < 3 || resumed == 0 {
		t.Errorf("got %d runs that found no room, %d that were resumed", stopped, resumed)
	}
	t.Logf("%d runs stopped by a full disk, %d resumed", stopped, resumed)
}

func countFinished(t *testing.T, run string) int {
	t.Helper()
	if _, err := os.Stat(filepath.Join(run, "journal.jsonl")); errors.Is(err, os.ErrNotExist) {
		return 0
	}
	return len(finished(t, run))
}

// A disk that cannot be written: exit code 3 and what was refused; reading verbs work.
func TestDisk_ReadOnly(t *testing.T) {
	t.Parallel()
	dir := plainEval(t, "")
	remount := mounted(t, dir, "size=16m")
	wevalr(t, dir, 0, "run", "eval.toml", "-o", "out", "--display", "none")
	run := runDir(t, filepath.Join(dir, "out"))
	remount("ro")
	for _, args := range [][]string{{"run", "eval.toml", "-o", "out"}, {"resume", run}, {"retry", run}, {"resume", run, "-n", "12"}} {
		if p := wevalr(t, dir, 3, args...); !strings.Contains(p.stderr.String(), "read-only file system") {
			t.Errorf("%v: got %s", args, p.stderr.String())
		}
	}
	for _, args := range [][]string{{"show", run}, {"show", run, "arith-1"}, {"ls", "-o", "out"}} {
		wevalr(t, dir, 0, args...)
	}
}

// straced starts wevalr under strace, which makes system calls of its own.
func straced(t *testing.T, dir, inject string, args ...string) *process {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skipf("no strace here: %v", err)
	}
	if out, err := exec.Command("strace", "-qq", "-o", os.DevNull, "-e", "trace=none", "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v: %s", err, out)
	}
	name, _, _ := strings.Cut(inject, ":")
	p := &process{Cmd: exec.Command("strace", append([]string{
		"-f", "-qq", "-o", os.DevNull, "-e", "trace=" + name, "-e", "inject=" + inject, "wevalr",
	}, args...)...), done: make(chan struct{})}
	p.Env, p.Dir, p.Stdout, p.Stderr = os.Environ(), dir, &p.stdout, &p.stderr
	p.begin(t)
	return p
}

// A disk that breaks in the middle: a failed fsync ends the attempt, is said, and is not believed later.
func TestDisk_Broken(t *testing.T) {
	t.Parallel()
	dir := plainEval(t, "")
	want := wholeRun(t, dir)
	stopped, kept := 0, 0
	for when := 2; when <= 14; when += 4 {
		root := fmt.Sprintf("out%d", when)
		p := straced(t, dir, fmt.Sprintf("fsync:error=EIO:when=%d+", when), "run", "eval.toml", "-o", root, "--display", "none", "-c", "1")
		code := p.exit(t)
		if code != 0 {
			stopped++
			if code != 3 || !strings.Contains(p.stderr.String(), "input/output error") {
				t.Errorf("fsync %d: got exit code %d\n%s", when, code, p.stderr.String())
			}
		}
		found, _ := filepath.Glob(filepath.Join(dir, root, "*", "*", "run.json"))
		if len(found) == 0 {
			continue
		}
		run := filepath.Dir(found[0])
		kept += countFinished(t, run)
		serversGone0(t, run)
		sameAs(t, dir, run, want)
	}
	if stopped == 0 {
		t.Error("no fsync has failed")
	}
	t.Logf("%d runs stopped by a broken disk, %d rollouts kept", stopped, kept)
}

// serversGone0 is serversGone for a journal that may name no server.
func serversGone0(t *testing.T, run string) {
	t.Helper()
	for _, e := range journalOf(t, run) {
		if e.T == "server" && e.PID != 0 && alive(e.PID) {
			t.Errorf("env-server %d still lives", e.PID)
		}
	}
}

// A slow disk: rollouts wait for it, nothing else does, and nothing is lost.
func TestDisk_Slow(t *testing.T) {
	t.Parallel()
	dir := plainEval(t, "[run]\nmax_concurrent = 4")
	want := wholeRun(t, dir)
	p := straced(t, dir, "fsync:delay_exit=100000", "run", "eval.toml", "-o", "slow", "--display", "none")
	if code := p.exit(t); code != 0 {
		t.Fatalf("exit code: got %d want 0\n%s", code, p.stderr.String())
	}
	run := runDir(t, filepath.Join(dir, "slow"))
	sameAs(t, dir, run, want)
}

// Few descriptors: a clean refusal or a complete run, and never a process left behind.
func TestLimit_Descriptors(t *testing.T) {
	t.Parallel()
	dir := plainEval(t, "")
	want := wholeRun(t, dir)
	codes := map[int][]int{}
	for n := 10; n <= 40; n += 5 {
		root := fmt.Sprintf("out%d", n)
		p := &process{Cmd: exec.Command("sh", "-c", fmt.Sprintf("ulimit -n %d; exec wevalr run eval.toml -o %s --display none", n, root)), done: make(chan struct{})}
		p.Env, p.Dir, p.Stdout, p.Stderr = os.Environ(), dir, &p.stdout, &p.stderr
		p.begin(t)
		code := p.exit(t)
		codes[code] = append(codes[code], n)
		if text := p.stderr.String(); code != 0 && (code == 1 || strings.Contains(text, "goroutine ")) {
			t.Errorf("%d descriptors: exit code %d\n%s", n, code, text)
		}
		if found, _ := filepath.Glob(filepath.Join(dir, root, "*", "*", "run.json")); len(found) == 1 {
			serversGone0(t, filepath.Dir(found[0]))
			sameAs(t, dir, filepath.Dir(found[0]), want)
		}
	}
	if len(codes[0]) == 0 || len(codes) == 1 {
		t.Errorf("exit codes: got %v", codes)
	}
	t.Logf("exit codes by the number of descriptors: %v", codes)
}

// The clock has jumped between attempts: times that lie ahead or long ago change nothing.
func TestClock_Jumps(t *testing.T) {
	t.Parallel()
	for name, year := range map[string]string{"ahead": "2199", "back": "1971"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := plainEval(t, "")
			want := wholeRun(t, dir)
			wevalr(t, dir, 0, "run", "eval.toml", "-o", "out", "--display", "none", "-n", "4", "-r", "2")
			run := runDir(t, filepath.Join(dir, "out"))
			path := filepath.Join(run, "journal.jsonl")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			moved := regexp.MustCompile(`"(at|start|end)":"\d{4}-`).ReplaceAll(text, []byte(`"$1":"`+year+`-`))
			if len(moved) != len(text) || string(moved) == string(text) {
				t.Fatal("no time was moved")
			}
			if err := os.WriteFile(path, moved, 0o600); err != nil {
				t.Fatal(err)
			}
			wevalr(t, dir, 0, "show", run)
			wevalr(t, dir, 0, "resume", run, "-n", "10", "-r", "4", "--display", "none")
			sameAs(t, dir, run, want)
			var s struct {
				DurationS float64 `json:"duration_s"`
			}
			readJSON(t, filepath.Join(run, "summary.json"), &s)
			if s.DurationS < 0 || s.DurationS > patience.Seconds() {
				t.Errorf("the attempt took %v s", s.DurationS)
			}
			wevalr(t, dir, 0, "ls", "-o", "out")
		})
	}
}

// Of several writers one gets the run, and the others are told who has it; a killed one holds nothing.
func TestWriters_OneAtATime(t *testing.T) {
	t.Parallel()
	dir := slowEval(t, "150ms")
	p := startSlow(t, dir, 4)
	_ = p.Process.Kill()
	p.exit(t)
	run := runDir(t, filepath.Join(dir, "out"))
	began := time.Now()
	var all [4]*process
	var wg sync.WaitGroup
	for i := range all {
		all[i] = start(t, dir, "resume", run, "--display", "none")
		wg.Go(func() { <-all[i].done })
	}
	wg.Wait()
	won := 0
	pid := regexp.MustCompile(`is being written by process (\d+)`)
	for i, p := range all {
		switch code := p.exit(t); code {
		case 0:
			won++
		case 2:
			if m := pid.FindStringSubmatch(p.stderr.String()); m == nil {
				t.Errorf("writer %d: got %s", i, p.stderr.String())
			}
		default:
			t.Errorf("writer %d: exit code %d\n%s", i, code, p.stderr.String())
		}
	}
	if won == 0 {
		t.Error("nobody got the run")
	}
	for rollout, n := range finished(t, run) {
		if n != 1 {
			t.Errorf("%s was finished %d times", rollout, n)
		}
	}
	if s := readSummary(t, run); s.Completed != 24 || s.Owed != 0 {
		t.Errorf("got %+v", s)
	}
	t.Logf("%d of %d writers got the run, one after the other, in %v", won, len(all), time.Since(began).Round(time.Millisecond))
}

// Torn and foreign bytes at the end of any file of a killed run: they are moved to recovered/, said, and
// nothing is lost. A complete line that is broken is not passed over: exit code 3 and its place.
func TestRun_DamagedFiles(t *testing.T) {
	t.Parallel()
	dir := plainEval(t, "")
	want := wholeRun(t, dir)
	wevalr(t, dir, 0, "run", "eval.toml", "-o", "out", "--display", "none", "-n", "5", "-r", "2")
	run := runDir(t, filepath.Join(dir, "out"))
	for _, name := range []string{"journal.jsonl", "traces.jsonl", "errored.jsonl", "scores.jsonl", "partial.jsonl"} {
		f, err := os.OpenFile(filepath.Join(run, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(`{"t":"finish","key":"arith-` + strings.Repeat("x", rand.IntN(200)))
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	p := wevalr(t, dir, 0, "resume", run, "--display", "none", "-n", "10", "-r", "4")
	if n := strings.Count(p.stderr.String(), "recovered: "); n != 5 {
		t.Errorf("got %d notes want 5:\n%s", n, p.stderr.String())
	}
	sameAs(t, dir, run, want)

	path := filepath.Join(run, "journal.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := []byte(strings.Replace(string(text), `"t":"finish"`, `"t";"finish"`, 1))
	if err := os.WriteFile(path, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	p = wevalr(t, dir, 3, "resume", run, "--display", "none")
	if !regexp.MustCompile(`journal\.jsonl:\d+: `).MatchString(p.stderr.String()) {
		t.Errorf("got %s", p.stderr.String())
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(broken) {
		t.Errorf("a run that is refused was changed: %v", err)
	}
}

// A second ^C that comes while wevalr writes its last lines, and any number after it, cannot hurt the
// run: it can be resumed.
func TestInterrupt_Storm_RunStaysGood(t *testing.T) {
	t.Parallel()
	dir := slowEval(t, "50ms")
	p := startSlow(t, dir, 4)
	storm := time.NewTicker(3 * time.Millisecond)
	defer storm.Stop()
	sent := 0
	for over := false; !over; {
		select {
		case <-p.done:
			over = true
		case <-storm.C:
			_ = p.Process.Signal(pick[os.Signal](os.Interrupt, syscall.SIGTERM, syscall.SIGHUP))
			sent++
		}
	}
	if code := p.exit(t); code != 130 && code != 143 {
		t.Errorf("exit code: got %d want 130 or 143\n%s", code, p.stderr.String())
	}
	run := runDir(t, filepath.Join(dir, "out"))
	serversGone(t, run, 3*time.Second)
	wevalr(t, dir, 0, "resume", run, "--display", "none")
	if s := readSummary(t, run); s.Completed != 24 || s.Owed != 0 {
		t.Errorf("got %+v", s)
	}
	t.Logf("%d signals", sent)
}
