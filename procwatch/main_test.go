package procwatch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is also the helper child: the test binary run as "<test> helper:<mode> <args>".
func TestMain(m *testing.M) {
	Main()
	if len(os.Args) > 1 {
		if mode, ok := strings.CutPrefix(os.Args[1], "helper:"); ok {
			syscall.Exit(helper(mode, os.Args[2:])) // the race detector would wait for a second
		}
	}
	goleak.VerifyTestMain(m)
}

func helper(mode string, args []string) int {
	switch mode {
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		hang()
	case "on-term": // exits with 0 on TERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		return 0
	case "parent": // starts its arguments as scripts, and waits for none of them
		for _, script := range args {
			cmd := exec.Command("/bin/sh", "-c", script)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Start(); err != nil {
				panic(err)
			}
			fmt.Println("pid", cmd.Process.Pid)
		}
		hang()
	case "echo": // says a byte to whoever connects to the socket
		l, err := net.Listen("unix", args[0])
		if err != nil {
			panic(err)
		}
		fmt.Println("ready")
		for {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Write([]byte{1})
				_ = c.Close()
			}
		}
	case "pieces": // writes its arguments one by one
		for _, piece := range args {
			_, _ = os.Stdout.WriteString(piece)
			runtime.Gosched()
		}
		hang()
	case "flood": // args: lines of 1 KiB
		n, _ := strconv.Atoi(args[0])
		w := bufio.NewWriterSize(os.Stdout, 64<<10)
		for i := range n {
			fmt.Fprintf(w, "%08d %s\n", i, strings.Repeat("x", 1014))
		}
		w.Flush()
	case "bomb": // args: children left to make, mark; every one is an orphan of the one before
		n, _ := strconv.Atoi(args[0])
		if n == 0 {
			hang()
		}
		cmd := exec.Command("/proc/self/exe", "helper:bomb", strconv.Itoa(n-1), args[1])
		cmd.SysProcAttr = sysProcAttr("setsid")
		cmd.Stdout = os.Stdout
		fmt.Println("bomb", os.Getpid())
		_ = cmd.Start()
	case "tree": // args: how the descendant leaves, whether the leader exits or stays, a mark
		spawn(args[0], args[2:])
		if args[1] == "exit" {
			return 7
		}
		hang()
	case "sleeper": // says its number on descriptor 3
		gate := os.NewFile(3, "gate")
		fmt.Fprintln(gate, "pid", os.Getpid())
		gate.Close()
		hang()
	case "host":
		return helperHost(args)
	default:
		if f := systemHelpers()[mode]; f != nil {
			return f(args)
		}
		fmt.Fprintln(os.Stderr, "unknown helper", mode)
		return 99
	}
	return 0
}

func hang() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	<-c
}

// spawn starts a sleeper as kind says and prints its number.
func spawn(kind string, mark []string) {
	if kind == "double" {
		cmd := exec.Command("/proc/self/exe", append([]string{"helper:tree", "plain", "exit"}, mark...)...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		_ = cmd.Run()
		return
	}
	cmd := exec.Command("/proc/self/exe", append([]string{"helper:sleeper"}, mark...)...)
	cmd.SysProcAttr = sysProcAttr(kind)
	if kind != "closed" {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	_ = w.Close()
	said, _ := io.ReadAll(r)
	fmt.Print(string(said))
}

// helperArgv is the command line of a helper child.
func helperArgv(mode string, args ...string) []string {
	return append([]string{"/proc/self/exe", "helper:" + mode}, args...)
}

const patience = 30 * time.Second

// within fails with all goroutines when c does not close in time.
func within[T any](t *testing.T, limit time.Duration, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(limit):
		buf := make([]byte, 1<<20)
		t.Fatalf("%s did not happen within %v\n%s", what, limit, buf[:runtime.Stack(buf, true)])
	}
	return v
}

// child starts spec and stops it with the test; lines gets its output.
func child(t *testing.T, level Containment, spec Spec) (p *Proc, lines <-chan Line) {
	t.Helper()
	out := make(chan Line, 4096)
	if spec.Sink == nil {
		spec.Sink = func(l Line) { out <- l }
	}
	if spec.Env == nil && testing.CoverMode() != "" {
		spec.Env = append(minimalEnv(), "GOCOVERDIR="+t.TempDir()) // or the helper complains on stderr
	}
	spec.Containment = level
	p, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("Start(%q): %v", spec.Argv, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := p.Stop(ctx, "cleanup"); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return p, out
}

// ended returns the Exit of a child that ends by itself.
func ended(t *testing.T, p *Proc) Exit {
	t.Helper()
	within(t, patience, "Done", p.Done())
	e, ok := p.Exit()
	if !ok {
		t.Fatal("no Exit after Done")
	}
	return e
}

// pidOf reads the number that a sleeper says.
func pidOf(t *testing.T, lines <-chan Line) int {
	t.Helper()
	l := within(t, patience, "the sleeper's line", lines)
	s, ok := strings.CutPrefix(string(l.Text), "pid ")
	pid, err := strconv.Atoi(s)
	if !ok || err != nil {
		t.Fatalf("got %q want a pid", l.Text)
	}
	return pid
}

// each runs f at every level that this system has.
func each(t *testing.T, f func(t *testing.T, level Containment)) {
	t.Helper()
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) { f(t, level) })
	}
}

func sh(script string) []string { return []string{"/bin/sh", "-c", script} }

// waiters calls f from n goroutines at once and returns what they got.
func waiters[T any](n int, f func() T) []T {
	out := make([]T, n)
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-gate; out[i] = f() })
	}
	close(gate)
	wg.Wait()
	return out
}
