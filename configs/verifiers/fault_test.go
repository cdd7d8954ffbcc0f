package verifiers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// drain is the drain_limit of the fault tests. settle is long: told to end, verifiers closes its socket
// seconds before it exits, and on a busy machine later than the default allows.
const (
	drain  = 2 * time.Second
	settle = 30 * time.Second
)

// strike is a way for a server to end, with the text of the typed error.
type strike struct {
	name, text string
	do         func(t *testing.T, m *model, pid int)
}

func strikes() []strike {
	exit := func(code int) func(*testing.T, *model, int) {
		return func(t *testing.T, m *model, _ int) {
			t.Helper()
			select {
			case m.gate <- fmt.Sprint("!exit ", code): // one held call tells the process that hears it
			case <-time.After(patience):
				t.Fatal("no held call")
			}
		}
	}
	signal := func(sig syscall.Signal) func(*testing.T, *model, int) {
		return func(t *testing.T, _ *model, pid int) {
			t.Helper()
			kill(t, pid, sig)
		}
	}
	return []strike{
		{"exit 0", "exited with code 0", exit(0)},
		{"exit 23", "exited with code 23", exit(23)},
		{"SIGKILL", "ended by signal 9 (killed)", signal(syscall.SIGKILL)},
		{"SIGTERM", "exited with code 0", signal(syscall.SIGTERM)}, // verifiers drops its runs and exits clean
	}
}

// A server that ends with rollouts in flight: the typed error, soon; nothing that was finished is lost;
// resume completes.
func TestFault_Exit(t *testing.T) {
	v := release(t)
	const finished = 6
	for i, s := range strikes() {
		for j, flying := range []int{1, 64} {
			transport := []string{"ipc", "tcp"}[(i+j)%2]
			t.Run(fmt.Sprintf("%s, %d in flight, %s", s.name, flying, transport), func(t *testing.T) {
				if testing.Short() {
					t.Skip("-short: one combination stands for all")
				}
				const n = finished + 64 + 10
				m := newModel(t)
				e := newEval(t, m.base(), v.command(t, "faulty")+fmt.Sprintf("transport = %q\ndrain_limit = %q\nsettle = %q", transport, drain, settle), plain(n))
				full := m.hold(finished, flying)
				p := e.start(t, "run", e.file, "--json", "-c", fmt.Sprint(flying))
				p.comes(full, "calls in flight")
				pid := e.serverPID(t)
				until(t, func() bool { return idle(pid) }) // what it has to say of its runs, it has said
				s.do(t, m, pid)
				gone := until(t, func() bool { return dead(pid) })
				r := p.wait()
				wantDeath(t, r, s.text, finished, flying, n)
				wantSoon(t, r, gone, 2*drain+time.Second)
				if got := m.left(t); got < flying-1 {
					t.Errorf("%d of %d model calls lost their caller: the others go on after the death", got, flying)
				}
				wantLeft(t, r, flying)
				kept := readLines(t, filepath.Join(r.dir, "traces.jsonl"))
				m.let()
				again := e.resume(t, r, "-c", "32")
				again.wantComplete(t, n)
				wantMean(t, again, share(n), n)
				all := readLines(t, filepath.Join(r.dir, "traces.jsonl"))
				if len(all) != n || strings.Join(all[:len(kept)], "") != strings.Join(kept, "") {
					t.Errorf("got %d episodes, want %d that begin with the %d from before", len(all), n, len(kept))
				}
			})
		}
	}
}

func wantDeath(t *testing.T, r result, text string, finished, flying, n int) {
	t.Helper()
	s := r.summary
	if r.code != 4 || s.Completed != finished || s.Errors != flying || s.Owed != n-finished {
		t.Errorf("got exit code %d, %+v; want 4, %d completed, %d errors", r.code, s, finished, flying)
	}
	if len(s.Failures) != 1 || s.Failures[0].Source != "server" || s.Failures[0].Kind != "exited" || s.Failures[0].Count != flying {
		t.Errorf("got failures %+v, want %d × server: exited", s.Failures, flying)
	}
	were := fmt.Sprintf("%d rollouts were in flight", flying)
	if flying == 1 {
		were = "1 rollout was in flight"
	}
	for _, want := range []string{text, were, "server-1-1.log", "wevalr resume"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("stderr has no %q:\n%s", want, r.stderr)
		}
	}
	if got := len(readLines(t, filepath.Join(r.dir, "traces.jsonl"))); got != finished {
		t.Errorf("got %d episodes on the disk, want %d", got, finished)
	}
}

// wantLeft checks what is kept of a death: what had arrived of each rollout, and what the server said.
func wantLeft(t *testing.T, r result, flying int) {
	t.Helper()
	if got := readLines(t, filepath.Join(r.dir, "partial.jsonl")); len(got) != flying || !strings.Contains(strings.Join(got, ""), "Say the word") {
		t.Errorf("got %d partial episodes, want %d", len(got), flying)
	}
	log, err := os.ReadFile(filepath.Join(r.dir, "logs/attempt_1/server-1-1.log"))
	if err != nil || !strings.Contains(string(log), "EnvServer up") {
		t.Errorf("got the server's log %q, %v", log, err)
	}
}

// wantSoon checks when the last error was delivered.
func wantSoon(t *testing.T, r result, gone time.Time, limit time.Duration) {
	t.Helper()
	var last time.Time
	for _, ev := range events(t, r.dir, "finish") {
		end, err := time.Parse(time.RFC3339Nano, fmt.Sprint(ev["end"]))
		if err != nil {
			t.Fatal(err)
		}
		if end.After(last) {
			last = end
		}
	}
	took := last.Sub(gone)
	t.Logf("the last error came %v after the end", took)
	if took > limit {
		t.Errorf("the last error came %v after the server's end, want at most %v", took, limit)
	}
}

// A stopped server is no dead server: nothing fails, and the run completes when it goes on.
func TestFault_Stop(t *testing.T) {
	v := release(t)
	for _, flying := range []int{1, 64} {
		t.Run(fmt.Sprint(flying), func(t *testing.T) {
			m := newModel(t)
			e := newEval(t, m.base(), v.command(t, "words"), plain(flying+10))
			full := m.hold(2, flying)
			p := e.start(t, "run", e.file, "--json", "-c", fmt.Sprint(flying))
			p.comes(full, "calls in flight")
			pid := e.serverPID(t)
			kill(t, pid, syscall.SIGSTOP)
			until(t, func() bool { return state(pid) == "T" })
			m.let()
			select { // long enough for drain_limit and settle to pass
			case <-p.done:
				t.Errorf("wevalr ended while its server was stopped:\n%s", p.stderr.String())
			case <-time.After(5 * time.Second):
			}
			kill(t, pid, syscall.SIGCONT)
			p.wait().wantComplete(t, flying+10)
		})
	}
}

// A cancelled rollout is torn down in the server, and its model call ends.
func TestFault_Cancel(t *testing.T) {
	v := release(t)
	for _, workers := range []string{"1", "2"} {
		t.Run("workers "+workers, func(t *testing.T) {
			const flying = 16
			m := newModel(t)
			e := newEval(t, m.base(), v.command(t, "words", "--workers", workers), plain(flying+20))
			full := m.hold(4, flying)
			p := e.start(t, "run", e.file, "--json", "-c", fmt.Sprint(flying))
			p.comes(full, "calls in flight")
			kill(t, p.Process.Pid, syscall.SIGTERM) // as ^C twice: cancel what is in flight, drain
			r := p.wait()
			if r.code != 143 || r.summary.Completed != 4 || r.summary.Cancelled != flying || r.summary.Errors != 0 {
				t.Errorf("got exit code %d, %+v; want 143, 4 completed, %d cancelled\n%s", r.code, r.summary, flying, r.stderr)
			}
			if got := m.left(t); got != flying {
				t.Errorf("%d of %d model calls were ended", got, flying)
			}
			log, err := os.ReadFile(filepath.Join(r.dir, "logs/attempt_1/server-1-1.log"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(log), "on client request"); got != flying {
				t.Errorf("the server's log tells of %d cancelled runs, want %d", got, flying)
			}
			m.let()
			e.resume(t, r).wantComplete(t, flying+20)
		})
	}
}

// until waits for what has no channel, and gives the time when it was so.
func until(t *testing.T, is func() bool) time.Time {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if is() {
			return time.Now()
		}
	}
	t.Fatalf("not within %v", patience)
	return time.Time{}
}

func dead(pid int) bool { s := state(pid); return s == "" || s == "Z" || s == "X" }

// idle says that all threads of a process slept at one moment: each had the same count of switches when looked at
// before it and after it.
func idle(pid int) bool {
	before := sleepers(pid)
	return before != "" && before == sleepers(pid)
}

// sleepers are the threads with their counts; "" where one does not sleep.
func sleepers(pid int) string {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	var all strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(b), "\nState:\tS") {
			return ""
		}
		_, count, _ := strings.Cut(string(b), "\nvoluntary_ctxt_switches:")
		all.WriteString(file + count)
	}
	return all.String()
}
