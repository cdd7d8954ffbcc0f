package procwatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func needCgroup(t *testing.T) {
	t.Helper()
	if _, err := nameCgroup(); err != nil {
		t.Skipf("no control group can be had: %v", err)
	}
}

// groupsOf returns the groups that a process has made beside its own.
func groupsOf(t *testing.T, pid int) []string {
	t.Helper()
	own, err := ownCgroup()
	if err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(own, fmt.Sprintf("procwatch-%d-*", pid)))
	return left
}

func TestProc_Cgroup_HoldsTheTreeAndIsRemoved(t *testing.T) {
	needCgroup(t)
	p, lines := child(t, Cgroup, Spec{Argv: helperArgv("tree", "closed", "stay")})
	g := p.body.(*warden).cgroup // asked for above
	pid, fd := p.PID(), handle(t, pidOf(t, lines))
	members := g.members(nil)
	if len(members) != 2 || members[0].pid != pid && members[1].pid != pid {
		t.Errorf("got members %+v want leader %d and its sleeper", members, pid)
	}
	// A group that the tree has made in its own goes too.
	if err := os.Mkdir(g.file("inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stop(t.Context(), ""); err != nil || !readable(fd, 0) {
		t.Errorf("got %v, sleeper dead: %v", err, readable(fd, 0))
	}
	if _, err := os.Stat(string(g)); !os.IsNotExist(err) {
		t.Errorf("the group is there: %v", err)
	}
}

// Without the warden, what has left the leader's session is found by its group alone.
func TestProc_Cgroup_OutlivesTheWarden(t *testing.T) {
	needCgroup(t)
	for _, kind := range []string{"setsid", "closed"} {
		p, lines := child(t, Cgroup, Spec{Argv: helperArgv("tree", kind, "stay")})
		w := p.body.(*warden) // asked for above
		leader, sleeper := handle(t, p.PID()), handle(t, pidOf(t, lines))
		_ = w.proc.Kill()
		e := ended(t, p)
		if e.Cause != CauseContainmentLost || !readable(leader, 0) || !readable(sleeper, 0) {
			t.Errorf("%s: got %+v, dead: leader %v, sleeper %v", kind, e, readable(leader, 0), readable(sleeper, 0))
		}
		if _, err := os.Stat(string(w.cgroup)); !os.IsNotExist(err) {
			t.Errorf("%s: the group is there: %v", kind, err)
		}
	}
}

func TestStart_CgroupThatCannotBeHad(t *testing.T) {
	_, unavailable := nameCgroup()
	tests := map[string]struct {
		prepare func(t *testing.T)
		reason  string
	}{
		"no Main": {func(t *testing.T) {
			t.Helper()
			hooked.Store(false)
			t.Cleanup(func() { hooked.Store(true) })
		}, "does not call procwatch.Main"},
		"not on this machine": {func(t *testing.T) {
			t.Helper()
			if unavailable == nil {
				t.Skip("this machine has it")
			}
		}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.prepare(t)
			before := resources()
			var se *StartError
			p, err := Start(t.Context(), Spec{Argv: sh("exit"), Containment: Cgroup})
			if p != nil || !errors.As(err, &se) || !errors.As(err, new(*levelError)) ||
				!strings.Contains(err.Error(), "the level cgroup cannot be had: ") || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("got %v", err)
			}
			sameResources(t, before)
		})
	}
}

// Nothing is left of a group that cannot do its work.
func TestCgroup_Make_SaysWhatIsWrong(t *testing.T) {
	needCgroup(t)
	g, err := nameCgroup()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []cgroup{cgroup(filepath.Join(string(g), "missing")), cgroup(filepath.Join(t.TempDir(), "no group"))} {
		if err := path.make(); err == nil {
			t.Errorf("%s: made", path)
		}
		if _, err := os.Stat(string(path)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}
