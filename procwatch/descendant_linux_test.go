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

// A child and its child; the kernel's short way and the long one see the same.
func TestProc_Descendants(t *testing.T) {
	p, lines := child(t, Group, Spec{Argv: sh("/bin/sh -c 'sleep 600 & echo pid $!; wait' & wait")})
	grandchild := pidOf(t, lines)
	children, all := p.Children(), p.Descendants()
	if len(children) != 1 || children[0].Parent != p.PID() || children[0].PID == grandchild || children[0].Ended {
		t.Fatalf("got children %+v of %d, want one, and not %d", children, p.PID(), grandchild)
	}
	want := [][2]int{{children[0].PID, p.PID()}, {grandchild, children[0].PID}}
	var got [][2]int
	for _, d := range all {
		got = append(got, [2]int{d.PID, d.Parent})
	}
	if !slices.Equal(got, want) {
		t.Errorf("got descendants %+v, want %v", all, want)
	}
	processes := processes()
	for _, long := range []struct {
		name string
		got  []stat
		want int
	}{
		{"children", childrenAmong(processes, p.PID()), 1}, {"descendants", descendants(processes, p.PID()), 2},
	} {
		same := func(s stat) bool { return s.pid == children[0].PID && s.start == children[0].Started }
		if len(long.got) != long.want || !slices.ContainsFunc(long.got, same) {
			t.Errorf("%s, the long way: got %+v", long.name, long.got)
		}
	}
}
