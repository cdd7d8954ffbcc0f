package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bench is a folder with an eval file on a fault server, and all that its wevalrs use: whatever is left
// of them is found here.
type bench struct {
	dir     string   // of the eval file; the servers' working directory
	runtime string   // XDG_RUNTIME_DIR
	tmp     string   // TMPDIR
	orphans []string // directories for the next start to sweep
	mark    string   // in the argv of each server, its warden and its grandchildren
	ctl     net.Listener

	mu      sync.Mutex
	servers map[int]net.Conn // by pid; those that can be told something
	groups  map[string]bool  // directories of control groups that were made for them
}

// stopGrace is that of every bench; what is left of a tree then has another two seconds.
const stopGrace = time.Second

// newBench makes one. server, run and more are added to the eval file's sections.
func newBench(t *testing.T, h habits, server, run, more string) *bench {
	t.Helper()
	b := &bench{servers: map[int]net.Conn{}, groups: map[string]bool{}}
	for _, dir := range []*string{&b.runtime, &b.tmp} {
		var err error
		if *dir, err = os.MkdirTemp("", "wf-"); err != nil { // a socket's path must be short
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(*dir) })
	}
	b.mark = "mark-" + filepath.Base(b.tmp)
	b.dir = evalFile(t, fmt.Sprintf(`
version = 1
name    = "fault"
[tasks]
plugin = "arith"
[model]
name = "sum"
[server]
command    = ["faultserver", "{address}", %q]
stop_grace = %q
%s
[run]
%s
[[plugin]]
name    = "arith"
source  = "$REPO/plugins/arith"
options = { tasks = 2500 }
%s
`, b.mark, stopGrace, server, run, more))
	b.habits(t, h)
	var err error
	if b.ctl, err = net.Listen("unix", filepath.Join(b.dir, "ctl")); err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(b.accept)
	t.Cleanup(func() {
		b.ctl.Close()
		accepting.Wait()
	})
	return b
}

// habits sets how the next servers work.
func (b *bench) habits(t *testing.T, h habits) {
	t.Helper()
	text, err := json.Marshal(h)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, "habits.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) accept() {
	for {
		c, err := b.ctl.Accept()
		if err != nil {
			break
		}
		pid := 0
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := fmt.Fscanln(c, &pid); err != nil {
			c.Close()
			continue
		}
		b.mu.Lock()
		b.servers[pid] = c
		if dir := groupOf(pid); dir != "" {
			b.groups[dir] = true
		}
		b.mu.Unlock()
	}
	b.hangUp()
}

// hangUp lets go of the servers.
func (b *bench) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.servers {
		c.Close()
	}
	clear(b.servers)
}

// tell gives a random living server an order; false when none lives. SIGSTOP is followed by a SIGCONT.
func (b *bench) tell(order string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for pid, c := range b.servers {
		if !alive(pid) {
			c.Close()
			delete(b.servers, pid)
			continue
		}
		if ms, ok := strings.CutPrefix(order, "stop "); ok {
			n, _ := strconv.Atoi(ms)
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			time.AfterFunc(time.Duration(n)*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
			return true
		}
		_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // it may be stopped
		_, err := fmt.Fprintln(c, order)
		return err == nil
	}
	return false
}

// told lets go what servers hold until then.
func (b *bench) told(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, "told"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// env is what its wevalrs need beside the test's own.
func (b *bench) env() []string {
	return []string{"XDG_RUNTIME_DIR=" + b.runtime, "TMPDIR=" + b.tmp}
}

func (b *bench) start(t *testing.T, args ...string) *process {
	t.Helper()
	return startEnv(t, b.dir, b.env(), args...)
}

// goOn starts the run, or goes on with it when there is one already.
func (b *bench) goOn(t *testing.T, flags ...string) *process {
	t.Helper()
	if found, _ := filepath.Glob(filepath.Join(b.dir, "out", "*", "*", "run.json")); len(found) == 1 {
		return b.start(t, append([]string{"resume", filepath.Dir(found[0])}, flags...)...)
	}
	return b.start(t, append([]string{"run", "eval.toml", "-o", "out"}, flags...)...)
}

// run is the one run directory, and whether there is one.
func (b *bench) run() (string, bool) {
	found, _ := filepath.Glob(filepath.Join(b.dir, "out", "*", "*", "run.json"))
	if len(found) != 1 {
		return "", false
	}
	return filepath.Dir(found[0]), true
}

// left lists the processes and files that its wevalrs have left.
func (b *bench) left() []string {
	var out []string
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		pid, _ := strconv.Atoi(filepath.Base(p))
		argv, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		if (bytes.Contains(argv, []byte(b.mark)) || cwd == b.dir) && pid != os.Getpid() && alive(pid) {
			out = append(out, fmt.Sprintf("process %d: %q in %s", pid, argv, cwd))
		}
	}
	b.mu.Lock()
	for dir := range b.groups {
		if _, err := os.Stat(dir); err == nil {
			out = append(out, dir)
		}
	}
	b.mu.Unlock()
	for _, dir := range []string{b.runtime, b.tmp} {
		found, _ := filepath.Glob(filepath.Join(dir, "*"))
		out = append(out, found...)
	}
	return out
}

// groupOf is the control group of version 2 that was made for a server, if one was.
func groupOf(pid int) string {
	groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(groups)) {
		path, v2 := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !v2 || !strings.HasPrefix(filepath.Base(path), "procwatch-") {
			continue
		}
		for mount := range strings.Lines(string(mounts)) {
			if f := strings.Fields(mount); strings.Contains(mount, " - cgroup2 ") {
				return filepath.Join(f[4], path)
			}
		}
	}
	return ""
}

// clean checks that nothing, but some, is left of any wevalr that has ended, after within at the latest, and
// gives the time that it took.
func (b *bench) clean(t *testing.T, within time.Duration, but ...string) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left := slices.DeleteFunc(b.left(), func(name string) bool { return slices.Contains(but, name) })
		took := time.Since(began)
		if len(left) == 0 {
			return took
		}
		if took > within {
			t.Fatalf("still there %v after wevalr's end:\n%s", within, strings.Join(left, "\n"))
		}
		<-tick.C
	}
}

// swept is clean after a SIGKILL of wevalr: the warden sweeps. A directory that wevalr had just made, and
// told no warden of yet, is left to the next start, which sweeps those that are a minute old: so it is made
// to be.
func (b *bench) swept(t *testing.T) time.Duration {
	t.Helper()
	old := time.Now().Add(-2 * time.Minute)
	found, _ := filepath.Glob(filepath.Join(b.runtime, "wevalr-*"))
	for _, dir := range found {
		names, _ := filepath.Glob(filepath.Join(dir, "*"))
		switch {
		case len(names) == 0:
			_ = os.Remove(dir) // killed even before it had its lock; empty, or else it stays and is found
		case len(names) == 1 && filepath.Base(names[0]) == "lock":
			if err := os.Chtimes(names[0], old, old); err == nil {
				b.orphans = append(b.orphans, dir)
			}
		}
	}
	return b.clean(t, stopGrace+2*time.Second, b.orphans...)
}

// record is what the audit reads of a line of journal.jsonl.
type record struct {
	T, Key, Outcome   string
	Index, Try        int
	Attempt, Instance int
	Generation        int
	Event             string
	Failure           *struct{ Source, Kind string }
	Episode           *struct {
		File     string
		Off, Len int64
	}
}

func (r record) try() string     { return fmt.Sprintf("%s#%d/%d", r.Key, r.Index, r.Try) }
func (r record) rollout() string { return fmt.Sprintf("%s#%d", r.Key, r.Index) }

// audited is what an audit has counted.
type audited struct {
	attempts, killed          int // lives of wevalr; those that ended by SIGKILL
	dispatched, accepted      int // tries; those that a server began
	completed, errors, unsent int
	cancelled, lost           int // lost: in flight when wevalr was killed
	generations               int
	ends                      map[string]int // of tries, by source and kind
}

func (a *audited) add(b *audited) {
	a.attempts += b.attempts
	a.killed += b.killed
	a.dispatched += b.dispatched
	a.accepted += b.accepted
	a.completed += b.completed
	a.errors += b.errors
	a.unsent += b.unsent
	a.cancelled += b.cancelled
	a.lost += b.lost
	a.generations += b.generations
	if a.ends == nil {
		a.ends = map[string]int{}
	}
	for k, n := range b.ends {
		a.ends[k] += n
	}
}

func (a *audited) String() string {
	return fmt.Sprintf("%d attempts (%d killed), %d server generations; %d tries dispatched = "+
		"%d completed + %d errors %v + %d cancelled + %d in flight at a kill + %d never sent; %d were accepted by a server, each ended once",
		a.attempts, a.killed, a.generations, a.dispatched, a.completed, a.errors, a.ends, a.cancelled, a.lost, a.unsent, a.accepted)
}

// undurable bounds the tries that have their answer, and no place on the wire any more, while their finish
// line is on its way to the disk.
const undurable = 256

// audit holds a run that is done against the ledger of its servers: every accepted request has ended
// exactly once, every rollout is finished exactly once, with one episode and one score.
func (b *bench) audit(t *testing.T, run string, inFlight int) *audited {
	t.Helper()
	a := &audited{ends: map[string]int{}}
	accepted := map[string]int{}
	ledger, err := os.ReadFile(filepath.Join(b.dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(ledger)) {
		if f := strings.Fields(line); f[1] == "accept" {
			accepted[f[2]]++
			a.accepted++
		}
	}
	flying, finished, episodes := map[string]bool{}, map[string]int{}, map[int64]bool{}
	closed := true
	leave := func(killed bool) {
		for try := range flying {
			switch {
			case accepted[try] == 0:
				a.unsent++
			case killed:
				a.lost++
			default:
				t.Errorf("%s was accepted and never ended", try)
			}
		}
		if most := inFlight + undurable; len(flying) > most {
			t.Errorf("%d tries had begun and not ended, of at most %d", len(flying), most)
		}
		clear(flying)
	}
	for _, r := range readLines[record](t, filepath.Join(run, "journal.jsonl")) {
		switch r.T {
		case "open":
			if !closed {
				a.killed++
				leave(true)
			}
			a.attempts++
			closed = false
		case "close":
			leave(false)
			closed = true
		case "server":
			if r.Event == "ready" {
				a.generations++
			}
		case "dispatch":
			if flying[r.try()] {
				t.Errorf("%s was dispatched twice", r.try())
			}
			flying[r.try()] = true
			a.dispatched++
		case "finish":
			if !flying[r.try()] {
				t.Errorf("%s ended without its dispatch, or twice", r.try())
			}
			delete(flying, r.try())
			switch r.Outcome {
			case "completed":
				finished[r.rollout()]++
				a.completed++
				if r.Episode == nil || r.Episode.File != "traces.jsonl" || episodes[r.Episode.Off] {
					t.Errorf("%s: no episode of its own: %+v", r.try(), r.Episode)
				} else {
					episodes[r.Episode.Off] = true
				}
			case "cancelled":
				a.cancelled++
			default:
				a.errors++
				a.ends[r.Failure.Source+"/"+r.Failure.Kind]++
			}
		}
	}
	if !closed {
		t.Error("the last attempt has no close line")
	}
	for rollout, n := range finished {
		if n != 1 {
			t.Errorf("%s was finished %d times", rollout, n)
		}
	}
	for try, n := range accepted {
		if n != 1 { // a try's dispatch line is written before it is sent, so no later life gives its number again
			t.Errorf("%s was accepted %d times", try, n)
		}
	}
	b.auditFiles(t, run, finished)
	return a
}

// auditFiles compares the run's other files with the journal.
func (b *bench) auditFiles(t *testing.T, run string, finished map[string]int) {
	t.Helper()
	s := readSummary(t, run)
	if s.Completed != len(finished) || s.Planned != s.Completed || s.Owed != 0 || s.ExitCode != 0 {
		t.Errorf("summary: got %+v, with %d finished in the journal", s, len(finished))
	}
	if n := len(readLines[json.RawMessage](t, filepath.Join(run, "traces.jsonl"))); n != len(finished) {
		t.Errorf("traces.jsonl: got %d episodes want %d", n, len(finished))
	}
	scored := map[string]int{}
	for _, line := range readLines[scoreLine](t, filepath.Join(run, "scores.jsonl")) {
		scored[fmt.Sprintf("%s#%d", line.Key, line.Index)]++
	}
	for rollout := range finished {
		if scored[rollout] != 1 {
			t.Errorf("%s was scored %d times", rollout, scored[rollout])
		}
	}
	if sc := s.Scores["arith.correct"]; sc.Mean != 1 || sc.Scored != len(finished) || sc.Missing != 0 || len(scored) != len(finished) {
		t.Errorf("scores: got %+v, %d lines; the server adds right", sc, len(scored))
	}
}

// pick is one of the choices.
func pick[T any](choices ...T) T { return choices[rand.IntN(len(choices))] }
