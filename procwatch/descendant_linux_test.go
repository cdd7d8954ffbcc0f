package procwatch

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A leader that does not wait for its children, as the broker of a pool does not.
func TestProc_DescendantExited(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		events := make(chan DescendantExit, 100)
		began := time.Now()
		p, lines := child(t, level, Spec{
			Argv:             helperArgv("parent", "sleep 600; true", "read x </dev/null; kill -KILL $$", "exit 23", "exit 137"),
			DescendantExited: func(e DescendantExit) { events <- e },
		})
		pids := map[int]int{}
		for i := range 4 {
			var pid int
			if _, err := fmt.Sscanf(string(within(t, patience, "a pid", lines).Text), "pid %d", &pid); err != nil {
				t.Fatal(err)
			}
			pids[pid] = i
		}
		want := []DescendantExit{{}, {Descendant: Descendant{Code: -1, Signal: syscall.SIGKILL, Signaled: true}}, {Descendant: Descendant{Code: 23}}, {Descendant: Descendant{Code: 137}}}
		// The first start of a Go program forks one more process, to try pidfds, and waits for it:
		// it may be seen between the two, once.
		next := func(what string) (DescendantExit, int) {
			for {
				e := within(t, patience, what, events)
				if i, ok := pids[e.PID]; ok {
					return e, i
				}
				if e.Lingering || e.Code != 0 {
					t.Fatalf("got %+v, which nobody started", e)
				}
			}
		}
		got := map[[2]any]bool{}
		for range 6 {
			e, i := next("an event")
			if i == 0 || got[[2]any{i, e.Lingering}] {
				t.Fatalf("got %+v once more", e)
			}
			got[[2]any{i, e.Lingering}] = true
			w := want[i]
			if e.Parent != p.PID() || !e.Ended || e.Code != w.Code || e.Signal != w.Signal || e.Signaled != w.Signaled || e.At.Before(began) {
				t.Errorf("got %+v want %+v", e, w)
			}
			if e.Lingering && time.Since(e.At) < descendantLinger {
				t.Errorf("lingering at once: %+v", e)
			}
		}
		// The first one is killed while it is known: its arguments are kept.
		var alive []Descendant
		for _, d := range p.Descendants() {
			if !d.Ended {
				alive = append(alive, d)
			}
		}
		i := slices.IndexFunc(alive, func(d Descendant) bool { return d.Parent == p.PID() })
		if i < 0 || !slices.Contains(alive[i].Argv, "sleep 600; true") {
			t.Fatalf("got %+v alive", alive)
		}
		killed := time.Now()
		if err := syscall.Kill(alive[i].PID, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		e, _ := next("the killed one's event")
		if e.PID != alive[i].PID || e.Signal != syscall.SIGTERM || !slices.Equal(e.Argv, alive[i].Argv) || e.Started != alive[i].Started || e.Lingering || e.At.Before(killed) {
			t.Errorf("got %+v want the end of %+v", e, alive[i])
		}
		if _, err := p.Stop(t.Context(), ""); err != nil || p.Descendants() != nil {
			t.Errorf("got %v, descendants %+v", err, p.Descendants())
		}
	})
}

func TestBelow_IsWhatDescends(t *testing.T) {
	p, lines := child(t, Group, Spec{Argv: helperArgv("tree", "setsid", "stay")})
	pid := pidOf(t, lines)
	fast, all := below(p.PID()), descendants(processes(), p.PID())
	if len(fast) != 1 || len(all) != 1 || fast[0].pid != pid || all[0].pid != pid || fast[0].start != all[0].start {
		t.Errorf("got %+v and %+v want %d", fast, all, pid)
	}
}
