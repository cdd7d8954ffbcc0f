package procwatch

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// handle opens a pidfd, so that the process cannot be mistaken for a later one.
func handle(t *testing.T, pid int) int {
	t.Helper()
	fd, ok := tryHandle(t, pid)
	if !ok {
		t.Fatalf("%d is gone", pid)
	}
	return fd
}

func tryHandle(t *testing.T, pid int) (fd int, ok bool) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, false
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd, true
}

func TestProc_Stop_EndsTheTree(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		for _, kind := range []string{"plain", "double", "setpgid", "setsid", "closed"} {
			t.Run(kind, func(t *testing.T) {
				p, lines := child(t, level, Spec{Argv: helperArgv("tree", kind, "stay"), Grace: time.Second})
				pid := pidOf(t, lines)
				fd := handle(t, pid)
				if _, err := p.Stop(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				if !readable(fd, 0) {
					t.Errorf("%d lives", pid)
				}
			})
		}
	})
}

func TestProc_Done_NothingSurvivesTheLeader(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		for _, kind := range []string{"plain", "double", "setpgid", "setsid", "closed"} {
			if level == Group && (kind == "setsid" || kind == "closed") {
				continue // the level does not hold them
			}
			t.Run(kind, func(t *testing.T) {
				p, lines := child(t, level, Spec{Argv: helperArgv("tree", kind, "exit")})
				pid := pidOf(t, lines)
				e := ended(t, p)
				if e.Code != 7 || len(e.Survivors) != 1 || e.Survivors[0].PID != pid || !slices.Contains(e.Survivors[0].Argv, "helper:sleeper") {
					t.Errorf("got %+v want survivor %d", e, pid)
				}
				if err := syscall.Kill(pid, 0); err != syscall.ESRCH && level != Group {
					t.Errorf("%d is there: %v", pid, err)
				}
				if len(e.PipeHolders) > 0 {
					t.Errorf("got holders %v", e.PipeHolders)
				}
			})
		}
	})
}

func TestProc_Done_StoppedDescendantEnds(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, lines := child(t, level, Spec{Argv: helperArgv("tree", "plain", "stay"), Grace: time.Second})
		pid := pidOf(t, lines)
		fd := handle(t, pid)
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		if _, err := p.Stop(t.Context(), ""); err != nil || !readable(fd, 0) {
			t.Errorf("got %v, dead %v", err, readable(fd, 0))
		}
	})
}

// Every process of the bomb leaves its session, makes the next one and ends.
func TestProc_Warden_SweepsWhatForksMeanwhile(t *testing.T) {
	mark := t.TempDir()
	p, lines := child(t, Warden, Spec{Argv: helperArgv("bomb", "200", mark)})
	within(t, patience, "first line", lines)
	ended(t, p)
	if left := marked(mark); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestProc_Warden_KilledIsContainmentLost(t *testing.T) {
	p, lines := child(t, Warden, Spec{Argv: helperArgv("tree", "plain", "stay")})
	leader, sleeper := handle(t, p.PID()), handle(t, pidOf(t, lines))
	_ = p.body.(*warden).proc.Kill() // asked for above
	e := ended(t, p)
	if e.Cause != CauseContainmentLost || e.Signal != syscall.SIGKILL || e.Requested {
		t.Errorf("got %+v", e)
	}
	if !readable(leader, 0) || !readable(sleeper, 0) {
		t.Errorf("dead: leader %v, sleeper %v", readable(leader, 0), readable(sleeper, 0))
	}
}

func TestProc_Start_FromAThreadThatEnds(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		started := make(chan *Proc)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			p, err := Start(context.Background(), Spec{Argv: helperArgv("on-term"), Containment: level})
			if err != nil {
				t.Error(err)
			}
			started <- p
		}()
		p := within(t, patience, "Start", started)
		e, err := p.Stop(t.Context(), "")
		if err != nil || e.Cause != CauseStopped {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

func TestProc_Start_LeaksNoDescriptorIntoTheChild(t *testing.T) {
	fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // inheritable
	if err != nil {
		t.Fatal(err)
	}
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 300)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	defer unix.Close(high)
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{Argv: sh("ls /proc/$$/fd")})
		for _, l := range ended(t, p).Tail {
			n, _ := strconv.Atoi(string(l.Text))
			if n == high || n > 2 && n < 10 { // a shell's own are 10 and up
				t.Errorf("the child has descriptor %s", l.Text)
			}
		}
	})
}

func TestProc_TempDir_IsRemoved(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		dir := filepath.Join(t.TempDir(), "own")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		p, _ := child(t, level, Spec{Argv: sh("echo x > file"), Dir: dir, TempDir: dir})
		ended(t, p)
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("it is there: %v", err)
		}
	})
}

// The warden removes it too: the host may be killed before it comes to that.
func TestProc_TempDir_IsRemovedByTheWarden(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "own")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p, _ := child(t, Warden, Spec{Argv: []string{"sleep", "600"}, TempDir: dir, DrainTimeout: time.Minute})
	held, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", p.PID()), os.O_WRONLY, 0) // keeps the host from its end
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(p.PID(), syscall.SIGKILL)
	gone(t, dir, patience)
	if _, over := p.Exit(); over {
		t.Error("the host came to its end meanwhile")
	}
	_ = held.Close()
	ended(t, p)
}

// What is known at the leader's death is kept when the warden is lost after it.
func TestWarden_LostAfterTheDeath(t *testing.T) {
	for want, status := range map[string]syscall.WaitStatus{"exit status 9": 9 << 8, "signal: killed": 9} {
		conn, theirs, err := os.Pipe()
		if err == nil {
			err = gob.NewEncoder(theirs).Encode(report{Dead: true, Known: true, Status: uint32(status)})
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = theirs.Close()
		proc, err := os.StartProcess("/bin/sleep", []string{"sleep", "600"}, &os.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		w := &warden{proc: proc, conn: conn, in: gob.NewDecoder(conn), out: gob.NewEncoder(io.Discard), leader: -1, pidfd: -1}
		if !w.await() {
			t.Fatal("the death was not seen")
		}
		if d := w.bury(); !d.known || d.status != status {
			t.Errorf("got %v, known %v, want %s", d.status, d.known, want)
		}
	}
}

func TestProc_Done_NamesWhoHoldsThePipe(t *testing.T) {
	p, lines := child(t, Group, Spec{Argv: helperArgv("tree", "setsid", "exit"), DrainTimeout: 100 * time.Millisecond})
	pid := pidOf(t, lines)
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	e := ended(t, p)
	if len(e.PipeHolders) != 1 || e.PipeHolders[0].PID != pid || e.PipeHolders[0].Argv[1] != "helper:sleeper" {
		t.Errorf("got %+v want pid %d", e.PipeHolders, pid)
	}
}

func TestProc_NewSession(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, lines := child(t, level, Spec{Argv: helperArgv("on-term")})
		within(t, patience, "first line", lines)
		s, ok := readStat(p.PID())
		if !ok || s.session != p.PID() || s.pgrp != p.PID() {
			t.Errorf("got %+v", s)
		}
	})
}
