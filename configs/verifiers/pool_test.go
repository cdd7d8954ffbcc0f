package verifiers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A worker of verifiers' pool dies, and the broker stays "healthy" and keeps sending it half of all runs:
// silence longer than suspect_after is then the typed error.
func TestFault_Worker(t *testing.T) {
	v := release(t)
	const finished, suspect = 6, 5 * time.Second
	signal := func(sig syscall.Signal) func(*testing.T, *model, int) {
		return func(t *testing.T, _ *model, pid int) {
			t.Helper()
			kill(t, pid, sig)
		}
	}
	for _, c := range []struct {
		name, text string
		do         func(t *testing.T, m *model, pid int)
	}{
		{"SIGKILL", "was ended by signal 9", signal(syscall.SIGKILL)},
		{"SIGTERM", "exited with code 0", signal(syscall.SIGTERM)},
		{"exit 23", "exited with code 23", func(_ *testing.T, m *model, _ int) { m.gate <- "!exit 23" }},
	} {
		for _, flying := range []int{1, 64} {
			t.Run(fmt.Sprintf("%s, %d in flight", c.name, flying), func(t *testing.T) {
				if testing.Short() {
					t.Skip("-short: one combination stands for all")
				}
				const n = finished + 64 + 10
				m := newModel(t)
				e := newEval(t, m.base(), v.command(t, "faulty", "--workers", "2")+fmt.Sprintf("suspect_after = %q", suspect), plain(n))
				full := m.hold(finished, flying)
				p := e.start(t, "run", e.file, "--json", "-c", fmt.Sprint(flying))
				p.comes(full, "calls in flight")
				ws := workers(t, e.serverPID(t))
				if len(ws) != 2 {
					t.Fatalf("got workers %v, want 2", ws)
				}
				c.do(t, m, ws[0])
				gone := until(t, func() bool { return dead(ws[0]) || dead(ws[1]) })
				r := p.wait()
				s := r.summary
				if r.code != 4 || s.Completed != finished || s.Errors != flying {
					t.Errorf("got exit code %d, %+v; want 4, %d completed, %d errors\n%s", r.code, s, finished, flying, r.stderr)
				}
				if len(s.Failures) != 1 || s.Failures[0].Kind != "worker_lost" {
					t.Errorf("got failures %+v, want server: worker_lost", s.Failures)
				}
				if !strings.Contains(r.stderr, c.text) || !strings.Contains(r.stderr, "worker") {
					t.Errorf("stderr has no worker that %s:\n%s", c.text, r.stderr)
				}
				wantSoon(t, r, gone, suspect+2*time.Second)
				m.let()
				again := e.resume(t, r, "-c", "32")
				again.wantComplete(t, n)
				wantMean(t, again, share(n), n)
			})
		}
	}
}

// on_exit = "restart": a new generation goes on, and what was in flight is tried anew.
func TestFault_Restart(t *testing.T) {
	v := release(t)
	const finished, flying, n = 6, 16, 40
	for _, c := range []struct{ name, lines, workers string }{
		{"server", "", "1"},
		{"worker", "suspect_after = \"2s\"\n", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(t)
			e := newEval(t, m.base(), v.command(t, "faulty", "--workers", c.workers)+c.lines+`on_exit = "restart"`, plain(n))
			full := m.hold(finished, flying)
			p := e.start(t, "run", e.file, "--json", "-c", fmt.Sprint(flying))
			p.comes(full, "calls in flight")
			first := e.serverPID(t)
			m.gate <- "!exit 23"
			until(t, func() bool { return dead(first) })
			m.let()
			r := p.wait()
			r.wantComplete(t, n)
			wantMean(t, r, share(n), n)
			if e.serverPID(t) == first {
				t.Error("no second generation is recorded")
			}
			again := 0
			for _, ev := range events(t, r.dir, "dispatch") {
				if ev["try"] == 2.0 {
					again++
				}
			}
			if again != flying {
				t.Errorf("%d rollouts were tried anew, want the %d in flight", again, flying)
			}
		})
	}
}

// workers are the workers of a broker, in the order of their start.
func workers(t *testing.T, broker int) []int {
	t.Helper()
	var out []int
	for _, pid := range children(broker) {
		argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(argv), "spawn_main") {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// children are the direct children of a process, whichever of its threads made them.
func children(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var out []int
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for f := range strings.FieldsSeq(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}
