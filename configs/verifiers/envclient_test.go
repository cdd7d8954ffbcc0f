package verifiers_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// verifiers' own client runs rollouts on `wevalr serve`, cancels one, and sees one cancelled.
func TestEnvClient(t *testing.T) {
	eachVersion(t, func(t *testing.T, v version) {
		m := newModel(t)
		e := &eval{dir: t.TempDir()}
		if err := os.Chmod(e.dir, 0o700); err != nil { // whoever reaches the socket can use the model
			t.Fatal(err)
		}
		address := "ipc://" + filepath.Join(e.dir, "s")
		server := e.start(t, "serve", "--address", address)
		full := m.hold(20, 2)
		c := v.client(t, "testdata/envclient.py", address, m.base())

		first := c.hears(t)
		if first.OK != 20 || len(first.Said) != 20 || first.Said[3] != "w3" || first.Said[4] != "no" {
			t.Errorf("got %+v, want 20 episodes that are ok", first)
		}
		within(t, full, "held model calls", nil)
		c.tell(t)
		second := c.hears(t)
		if !second.Cancelled || !second.Left || second.Text != "Cancelled: rollout aborted" {
			t.Errorf("got %+v, want one run that was left and one that was aborted", second)
		}
		if got := m.left(t); got != 2 {
			t.Errorf("%d of 2 model calls were ended", got)
		}
		m.let()
		c.tell(t)
		if third := c.hears(t); third.OK != 1 {
			t.Errorf("got %+v, want an episode after the cancels", third)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		kill(t, server.Process.Pid, syscall.SIGTERM)
		within(t, server.done, "end of wevalr serve", nil)
		if code := server.ProcessState.ExitCode(); code != 0 {
			t.Errorf("wevalr serve ended with code %d\n%s", code, server.stderr.String())
		}
	})
}

// client is a Python program that is told when to go on.
type client struct {
	*exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
	err   *tail
}

type heard struct {
	OK              int
	Said            []string
	Cancelled, Left bool
	Text            string
}

type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	return len(p), nil
}

func (v version) client(t *testing.T, script string, args ...string) *client {
	t.Helper()
	c := &client{Cmd: exec.CommandContext(t.Context(), v.python, append([]string{script}, args...)...), err: &tail{}}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.lines, c.Stderr = in, bufio.NewScanner(out), c.err
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *client) tell(t *testing.T) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in); err != nil {
		t.Fatal(err)
	}
}

func (c *client) hears(t *testing.T) (h heard) {
	t.Helper()
	got := make(chan struct{})
	go func() {
		defer close(got)
		c.lines.Scan()
	}()
	within(t, got, "line of the client", nil)
	if err := json.Unmarshal(c.lines.Bytes(), &h); err != nil {
		_ = c.Wait()
		t.Fatalf("%v: %q\n%s", err, c.lines.Text(), c.err.b)
	}
	return h
}
