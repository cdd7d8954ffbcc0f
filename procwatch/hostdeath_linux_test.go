package procwatch

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startHost starts a helper host and returns it with its lines.
func startHost(t *testing.T, how string, level Containment, dir string, grace time.Duration, argv ...string) (*exec.Cmd, <-chan Line) {
	t.Helper()
	args := append([]string{"helper:host", how, string(level), dir, fmt.Sprint(grace.Milliseconds())}, argv...)
	cmd := exec.Command("/proc/self/exe", args...)
	if level == Cgroup {
		t.Cleanup(func() { // after the host's death
			for _, g := range groupsOf(t, cmd.Process.Pid) {
				gone(t, g, patience)
			}
		})
	}
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan Line, 4096)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- Line{Text: slices.Clone(s.Bytes())}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, lines
}

// marked returns the living processes that have mark in their arguments.
func marked(mark string) (out []Process) {
	for _, s := range processes() {
		if argv := argvOf(s.pid); !s.ended() && slices.ContainsFunc(argv, func(a string) bool { return strings.Contains(a, mark) }) {
			out = append(out, Process{PID: s.pid, Argv: argv})
		}
	}
	return out
}

// noneMarked waits until no process has mark.
func noneMarked(t *testing.T, mark string, limit time.Duration) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for {
		left := marked(mark)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v: %v", limit, left)
		}
	}
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "own")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestHostDeath_LeavesNothing(t *testing.T) {
	for _, level := range levels(t)[1:] { // the level group promises the leader only
		t.Run(string(level), func(t *testing.T) { hostDeathLeavesNothing(t, level) })
	}
}

func hostDeathLeavesNothing(t *testing.T, level Containment) {
	t.Helper()
	for _, how := range []string{"kill", "exit", "panic", "fatal"} {
		for _, kind := range []string{"plain", "double", "setsid", "closed"} {
			t.Run(how+"/"+kind, func(t *testing.T) {
				dir := tempDir(t)
				cmd, lines := startHost(t, how, level, dir, time.Second, helperArgv("tree", kind, "stay")...)
				var pids []int
				for len(pids) < 2 {
					var pid int
					l := within(t, patience, "a line of the host", lines)
					if _, err := fmt.Sscanf(string(l.Text), "leader %d", &pid); err != nil {
						if _, err := fmt.Sscanf(string(l.Text), "pid %d", &pid); err != nil {
							t.Fatalf("got %q", l.Text)
						}
					}
					pids = append(pids, pid)
				}
				var fds []int
				for _, pid := range pids {
					if fd, ok := tryHandle(t, pid); ok { // a host that ended by itself may have been faster
						fds = append(fds, fd)
					}
				}
				if how == "kill" {
					if len(fds) != 2 {
						t.Fatal("the tree was gone before its host")
					}
					_ = cmd.Process.Kill()
				}
				for _, fd := range fds {
					if !readable(fd, 3*time.Second) {
						t.Error("a process lives after Grace + 2 s")
					}
				}
				noneMarked(t, dir, 3*time.Second) // the host itself
				gone(t, dir, 3*time.Second)
			})
		}
	}
}

// gone waits until dir is removed.
func gone(t *testing.T, dir string, limit time.Duration) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the temp dir is there after %v", limit)
		}
	}
}

func TestHostDeath_Warden_KillsWhatIgnoresTerm(t *testing.T) {
	mark := filepath.Join(tempDir(t), "mark")
	cmd, lines := startHost(t, "kill", Warden, "", 100*time.Millisecond, append(helperArgv("ignore-term"), mark)...)
	within(t, patience, "the leader's number", lines)
	within(t, patience, "first line", lines)
	_ = cmd.Process.Kill()
	noneMarked(t, mark, 2100*time.Millisecond)
}

// Killed at any moment, in Start, in Stop or between: the warden's own arguments and the sleeper's have the mark too.
func TestHostDeath_AtRandomMoments(t *testing.T) {
	moments := orLong(20, 50)
	if testing.Short() {
		moments = 4
	}
	for _, level := range levels(t)[1:] {
		t.Run(string(level), func(t *testing.T) {
			for range moments {
				mark := filepath.Join(tempDir(t), "mark")
				cmd, lines := startHost(t, "churn", level, "", time.Second, append(helperArgv("tree", "setsid", "stay"), mark)...)
				within(t, patience, "first line", lines)
				moment := time.NewTimer(time.Duration(rand.IntN(60_000)) * time.Microsecond)
				<-moment.C
				_ = cmd.Process.Kill()
				for range lines { // read on, or the host blocks
				}
				noneMarked(t, mark, 5*time.Second)
			}
		})
	}
}

func TestHostDeath_Group_TakesTheLeader(t *testing.T) {
	cmd, lines := startHost(t, "kill", Group, "", time.Hour, helperArgv("ignore-term")...)
	var said []string // the host's line and the leader's, which may come first
	var pid int
	for range 2 {
		l := string(within(t, patience, "the leader's number and its first line", lines).Text)
		said = append(said, l)
		_, _ = fmt.Sscanf(l, "leader %d", &pid)
	}
	if pid == 0 {
		t.Fatalf("got %q", said)
	}
	fd := handle(t, pid)
	_ = cmd.Process.Kill()
	if !readable(fd, 2*time.Second) {
		t.Error("the leader lives")
	}
}

// A host that was stopped does not blame its child: both were, or the round's deadline meant nothing.
func TestHost_Suspended_ChildLives(t *testing.T) {
	if testing.Short() {
		t.Skip("it is stopped for 4 s")
	}
	path := filepath.Join(t.TempDir(), "s")
	cmd, lines := startHost(t, "watch", Group, path, 0, helperArgv("echo", path)...)
	answers := func(n int) {
		t.Helper()
		for range n {
			if l := within(t, patience, "an answer", lines); string(l.Text) != "answer <nil>" {
				t.Fatalf("got %q", l.Text)
			}
		}
	}
	answers(2)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awake := time.NewTimer(4 * time.Second)
	<-awake.C
	for len(lines) > 0 {
		<-lines
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	tolerated := 0
	for good := 0; good < 5; {
		switch l := within(t, patience, "an answer", lines); {
		case string(l.Text) == "answer <nil>":
			good++
		case strings.HasPrefix(string(l.Text), "answer ") && tolerated == 0:
			tolerated++ // the round that was stopped
		default:
			t.Fatalf("got %q", l.Text)
		}
	}
}
