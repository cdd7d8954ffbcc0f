package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal; what is written to it is what a person types.
type terminal struct {
	*os.File // the master: closing it is what the terminal emulator's end does
	slave    *os.File
	said
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	raw, err := master.SyscallConn() // Fd would make it blocking, and a close would wait for the reader
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if cerr := raw.Control(func(fd uintptr) {
		err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	tty := &terminal{File: master, slave: slave}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&tty.said, master)
	}()
	t.Cleanup(func() {
		slave.Close()
		master.Close()
		<-read
	})
	return tty
}

// start starts wevalr in the terminal, as the leader of its session.
func (tty *terminal) start(t *testing.T, b *bench, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command("wevalr", args...), done: make(chan struct{})}
	p.Dir, p.Env = b.dir, append(os.Environ(), b.env()...)
	p.Stdin, p.Stdout, p.Stderr = tty.slave, tty.slave, tty.slave
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.begin(t)
	return p
}

// state is how the terminal is set: what a program that changes it has to restore.
func (tty *terminal) state(t *testing.T) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(tty.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// interrupt types ^C.
func (tty *terminal) interrupt(t *testing.T) {
	t.Helper()
	if _, err := tty.File.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
}

// held starts a run in the terminal, of whose rollouts only the first is ever answered, and waits until two
// more are with the server.
func held(t *testing.T, tty *terminal, h habits, server string) (*bench, *process) {
	t.Helper()
	h.HoldAfter = 1
	b := newBench(t, h, server, "max_concurrent = 2", "")
	p := tty.start(t, b, "run", "eval.toml", "-o", "out", "-n", "5")
	b.ledgerHas(t, "accept", 3)
	return b, p
}

// ledgerHas waits until the servers have noted so many of a word.
func (b *bench) ledgerHas(t *testing.T, word string, n int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		text, _ := os.ReadFile(filepath.Join(b.dir, "ledger"))
		got := strings.Count(string(text), " "+word+" ")
		if got >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server noted %q %d times, want %d:\n%s", word, got, n, text)
		}
		<-tick.C
	}
}

// What a person does at a terminal to end a run whose rollouts take for ever. The server's own teardown
// has run: it was told of the cancels, then stopped, unless nobody could wait for that.
func TestTerminal_Ends(t *testing.T) {
	t.Parallel()
	const again = "interrupted: nothing new"
	for name, c := range map[string]struct {
		end       func(t *testing.T, tty *terminal, p *process)
		code      int
		cancelled int // rollouts that the server took down
		habits    habits
	}{
		"twice": {func(t *testing.T, tty *terminal, _ *process) {
			tty.interrupt(t)
			tty.await(t, again)
			tty.interrupt(t)
		}, 130, 2, habits{}},
		"term": {func(t *testing.T, _ *terminal, p *process) { p.signal(t, syscall.SIGTERM) }, 143, 2, habits{}},
		"hup":  {func(t *testing.T, _ *terminal, p *process) { p.signal(t, syscall.SIGHUP) }, 143, 2, habits{}},
		"ignored": {func(t *testing.T, tty *terminal, _ *process) {
			tty.interrupt(t)
			tty.await(t, again)
			tty.interrupt(t)
		}, 130, 2, habits{IgnoreTerm: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tty := newTerminal(t)
			before := tty.state(t)
			b, p := held(t, tty, c.habits, "")
			c.end(t, tty, p)
			if code := p.exit(t); code != c.code {
				t.Errorf("exit code: got %d want %d\n%s", code, c.code, tty.String())
			}
			b.clean(t, 0)
			if after := tty.state(t); after != before {
				t.Errorf("the terminal is not as it was: got %+v want %+v", after, before)
			}
			if text := tty.String(); strings.Contains(text, "\x1b") {
				t.Errorf("an escape sequence: %q", text)
			}
			b.ledgerHas(t, "cancelled", c.cancelled)
			if !c.habits.IgnoreTerm {
				b.ledgerHas(t, "stopped", 1)
			}
			b.endedRun(t, tty, c.code)
		})
	}
}

// endedRun checks what an interrupted run of 5 × 1, one of them answered and two in flight, has left, and said at last.
func (b *bench) endedRun(t *testing.T, tty *terminal, code int) {
	t.Helper()
	run, ok := b.run()
	if !ok {
		t.Fatal("no run")
	}
	if s := readSummary(t, run); s.Completed != 1 || s.Cancelled != 2 || s.NeverRun != 2 || s.ExitCode != code {
		t.Errorf("got %+v", s)
	}
	if tty != nil {
		last := "4 of 5 rollouts are owed; go on with: wevalr resume " + filepath.Join("out", "fault", filepath.Base(run)) + "\r\n"
		tty.await(t, last)
		if !strings.HasSuffix(tty.String(), last) {
			t.Errorf("the last line was to be the command that goes on; got\n%s", tty.String())
		}
	}
	b.habits(t, habits{})
	if code := b.goOn(t).exit(t); code != 3 { // nothing scores
		t.Errorf("resume: exit code %d", code)
	}
	if s := readSummary(t, run); s.Completed != 5 {
		t.Errorf("after resume: got %+v", s)
	}
	b.clean(t, 0)
}

// ^C once: what is in flight finishes, and nothing else begins.
func TestTerminal_Once_Drains(t *testing.T) {
	t.Parallel()
	tty := newTerminal(t)
	b := newBench(t, habits{LatencyMS: 1500}, "", "max_concurrent = 2", "")
	p := tty.start(t, b, "run", "eval.toml", "-o", "out", "-n", "5")
	b.ledgerHas(t, "accept", 2)
	tty.interrupt(t)
	began := time.Now()
	tty.await(t, "interrupted: nothing new is dispatched, what is in flight finishes; interrupt again to cancel it; go on later with: wevalr resume out/fault/")
	took := time.Since(began)
	if code := p.exit(t); code != 130 {
		t.Errorf("exit code: got %d want 130\n%s", code, tty.String())
	}
	b.clean(t, 0)
	run, _ := b.run()
	s := readSummary(t, run)
	if s.Completed < 2 || s.Completed > 4 || s.Cancelled+s.Errors > 0 || s.NeverRun != 5-s.Completed {
		t.Errorf("got %+v", s)
	}
	b.ledgerHas(t, "stopped", 1)
	t.Logf("acknowledged after %v", took.Round(time.Millisecond))
}

// ^C three times while the server ignores everything: wevalr leaves at once, and its warden sweeps.
func TestTerminal_Thrice_LeavesAtOnce(t *testing.T) {
	t.Parallel()
	tty := newTerminal(t)
	before := tty.state(t)
	b, p := held(t, tty, habits{IgnoreTerm: true}, "cancel_grace = \"10m\"")
	pids := b.pids()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // not even a cancel is answered
			t.Fatal(err)
		}
	}
	tty.interrupt(t)
	tty.await(t, "interrupted: nothing new")
	tty.interrupt(t)
	tty.await(t, "interrupted: what is in flight is cancelled; interrupt again to leave at once")
	tty.interrupt(t)
	began := time.Now()
	if code := p.exit(t); code != 130 {
		t.Errorf("exit code: got %d want 130\n%s", code, tty.String())
	}
	took := time.Since(began)
	tty.await(t, "interrupted 3 times: leaving at once")
	tty.await(t, "what may be left behind: the env-servers of out/fault/")
	sweeping := b.swept(t)
	if after := tty.state(t); after != before {
		t.Errorf("the terminal is not as it was: got %+v want %+v", after, before)
	}
	b.habits(t, habits{})
	if code := b.goOn(t).exit(t); code != 3 { // nothing scores
		t.Errorf("resume: exit code %d", code)
	}
	t.Logf("left after %v, swept after another %v", took.Round(time.Millisecond), sweeping.Round(time.Millisecond))
}

// pids are the living servers.
func (b *bench) pids() (out []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for pid := range b.servers {
		if alive(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// The terminal goes away: the kernel sends SIGHUP, and nothing can be printed any more.
func TestTerminal_Gone_Ends(t *testing.T) {
	t.Parallel()
	tty := newTerminal(t)
	b, p := held(t, tty, habits{}, "")
	if err := errors.Join(tty.slave.Close(), tty.Close()); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(t); code != 143 {
		t.Errorf("exit code: got %d want 143", code)
	}
	b.clean(t, 0)
	b.ledgerHas(t, "cancelled", 2)
	b.ledgerHas(t, "stopped", 1)
	b.endedRun(t, nil, 143)
}
