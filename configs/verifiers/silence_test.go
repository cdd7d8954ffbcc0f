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

// wantStalled checks that what was cut short is told as configured.
func wantStalled(t *testing.T, r result, code, n int) {
	t.Helper()
	s := r.summary
	if r.code != code || s.Errors == 0 || s.Completed+s.Errors != n {
		t.Fatalf("got exit code %d, %+v; want %d and all %d ended, some of them in error\n%s", r.code, s, code, n, r.stderr)
	}
	if len(s.Failures) != 1 || s.Failures[0].Source != "server" || s.Failures[0].Kind != "stalled" || s.Failures[0].Count != s.Errors ||
		!strings.Contains(s.Failures[0].Example, "nothing came back for a rollout for") {
		t.Errorf("got failures %+v, want %d × server: stalled", s.Failures, s.Errors)
	}
}

// A model endpoint that goes silent in mid-rollout: after stall_after of silence the rollouts end, each torn
// down in the server, and the server goes on.
func TestStall_Endpoint(t *testing.T) {
	v := release(t)
	const n, answers = 5, 7 // answers: of three a rollout
	m := newModel(t)
	tasks := plain(n)
	for _, x := range tasks {
		data, _ := x["data"].(map[string]any)
		data["turns"] = 3
	}
	e := newEval(t, m.base(), v.command(t, "words")+`stall_after = "3s"`, tasks)
	full := m.hold(answers, n-answers/3)
	p := e.start(t, "run", e.file, "--json", "-c", fmt.Sprint(n))
	p.comes(full, "calls in flight")
	r := p.wait()
	wantStalled(t, r, 3, n)
	if r.summary.Completed > answers/3 {
		t.Errorf("got %+v, want at most %d completed of %d answers", r.summary, answers/3, answers)
	}
	if got := m.left(t); got != r.summary.Errors {
		t.Errorf("%d model calls were ended, want one of each of the %d stalled rollouts", got, r.summary.Errors)
	}
	if got := strings.Count(serverLog(t, r), "on client request"); got != r.summary.Errors {
		t.Errorf("the server's log tells of %d cancelled runs, want %d", got, r.summary.Errors)
	}
	if said := strings.Join(readLines(t, filepath.Join(r.dir, "partial.jsonl")), ""); !strings.Contains(said, `"role":"assistant"`) {
		t.Error("no stalled rollout had an answer: none was in its middle")
	}
	for _, ev := range events(t, r.dir, "server") {
		if ev["event"] == "exited" && ev["reason"] != "stopped by wevalr" {
			t.Errorf("got the event %v, want a server that lives", ev)
		}
	}
	m.let()
	e.resume(t, r).wantComplete(t, n)
}

// A server that does not even answer the cancel: its generation ends.
func TestStall_Server(t *testing.T) {
	v := release(t)
	const n, flying = 12, 4
	m := newModel(t)
	e := newEval(t, m.base(), v.command(t, "words")+"stall_after = \"2s\"\ncancel_grace = \"1s\"\nstop_grace = \"1s\"", plain(n))
	full := m.hold(2, flying)
	p := e.start(t, "run", e.file, "--json", "-c", fmt.Sprint(flying))
	p.comes(full, "calls in flight")
	pid := e.serverPID(t)
	kill(t, pid, syscall.SIGSTOP)
	r := p.wait()
	wantStalled(t, r, 4, 2+flying)
	if !dead(pid) {
		t.Error("the stopped server lives")
	}
	m.let()
	e.resume(t, r).wantComplete(t, n)
}

// A pool's broker answers health before any worker can run something. warm = "on", and "auto" where a pool
// is seen, ask a worker before the first rollout; "off" believes the broker.
func TestWarm(t *testing.T) {
	v := release(t)
	for _, warm := range []string{"auto", "on", "off"} {
		t.Run(warm, func(t *testing.T) {
			m := newModel(t)
			e := newEval(t, m.base(), v.command(t, "cold", "--workers", "2")+fmt.Sprintf("warm = %q", warm), plain(8))
			p := e.start(t, "run", e.file, "--json")
			broker := 0
			until(t, func() bool {
				broker = descendant(p.Process.Pid, v.python)
				return broker != 0 && len(workers(t, broker)) == 2
			})
			ready := func() bool {
				dirs, _ := filepath.Glob(filepath.Join(e.dir, "runs/*/*"))
				return len(dirs) == 1 && len(events(t, dirs[0], "server")) > 0
			}
			if warm == "off" {
				until(t, ready)
			}
			select { // long enough for the broker to answer health
			case <-p.done:
				t.Fatalf("wevalr ended:\n%s", p.stderr.String())
			case <-time.After(5 * time.Second):
			}
			if ready() != (warm == "off") {
				t.Errorf("ready: %v, with no worker that answers", ready())
			}
			e.write(t, "go", "")
			p.wait().wantComplete(t, 8)
		})
	}
}

// descendant is the first process below pid that runs a program, or 0.
func descendant(pid int, program string) int {
	for _, c := range children(pid) {
		if argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c)); strings.HasPrefix(string(argv), program+"\x00") {
			return c
		}
		if found := descendant(c, program); found != 0 {
			return found
		}
	}
	return 0
}

func serverLog(t *testing.T, r result) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "logs/attempt_1/server-1-1.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
