package zmqio

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// python is an interpreter with pyzmq, from WEVALR_ZMQ_PYTHON.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("WEVALR_ZMQ_PYTHON")
	if path == "" {
		t.Skip("WEVALR_ZMQ_PYTHON is not set: no Python with pyzmq")
	}
	return path
}

// startScript runs a server of testdata/interop until the test ends.
func startScript(t *testing.T, name string) (endpoint string) {
	t.Helper()
	path := socketPath(t)
	cmd := exec.Command(python(t), filepath.Join("testdata", "interop", name), "ipc://"+path)
	cmd.Env = append(os.Environ(), "POOL_DIR="+filepath.Dir(path))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		force := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer force.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", name, err, stderr.String())
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, stderr.String())
	}
	return strings.TrimSpace(line)
}

// Cancels at random moments, against a server that answers both the cancelled run and its cancel.
func TestInterop_RandomCancels_AllDrained(t *testing.T) {
	const calls = 500
	c := dial(t, startScript(t, "server.py"), Options{CancelPayload: cancelText, CancelGrace: patience})
	var wg sync.WaitGroup
	var mu sync.Mutex
	done, cancelled := 0, 0
	for i := range calls {
		wg.Go(func() {
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(time.Duration(rand.IntN(400))*time.Millisecond, func() { cancel(errCause) })
			defer timer.Stop()
			work := strconv.Itoa(rand.IntN(400))
			if i%5 == 0 {
				work = "never"
			}
			r, err := c.Call(ctx, "run", []byte(work), nil)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && string(r.Payload) == "done":
				done++
			case errors.Is(err, errCause) && r.Payload == nil:
				cancelled++
			default:
				t.Errorf("got %q, %v", r.Payload, err)
			}
		})
	}
	wg.Wait()
	until(t, "the draining", func() bool { return c.Stats().Draining == 0 })
	s := c.Stats()
	t.Logf("%d done, %d cancelled, %+v", done, cancelled, s)
	// Two answers to each call that was cancelled when it was sent, and one to each cancel that came
	// after the run's reply.
	if s.Pending != 0 || s.Late != 0 || s.Sent != s.Received || s.Drained != s.Sent-calls+int64(cancelled) || cancelled < calls/5 {
		t.Errorf("got %+v", s)
	}
	if err := c.Err(); err != nil || done+cancelled != calls {
		t.Errorf("got %v, %d + %d of %d", err, done, cancelled, calls)
	}
}

func TestInterop_PythonClient_IsServed(t *testing.T) {
	interpreter := python(t)
	ended := make(chan error, 100)
	s := listen(t, "ipc://"+socketPath(t), func(ctx context.Context, req *Request) []byte {
		switch req.Method {
		case "health":
			return []byte("well")
		case "cancel":
			return req.CancelRun(string(req.Payload), func(found bool) []byte { return strconv.AppendBool(nil, found) })
		}
		if err := req.Delta([]byte("begun")); err != nil {
			t.Error(err)
		}
		if string(req.Payload) != "never" {
			return req.Payload
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return []byte("aborted")
	}, ServerOptions{})
	out, err := exec.Command(interpreter, filepath.Join("testdata", "interop", "client.py"), s.Endpoint()).CombinedOutput()
	if err != nil || string(out) != "echoed 200\ncancelled 50\nleaves 20\n" {
		t.Fatalf("%v: %s", err, out)
	}
	causes := map[error]int{}
	for range 70 {
		causes[await(t, "a run's end", ended)]++
	}
	if causes[ErrCancelled] != 50 || causes[ErrPeerGone] != 20 {
		t.Errorf("got %v", causes)
	}
}

// A worker dies behind a broker that lives: the call ends by its own deadline, its cancel is answered,
// and the answer that never comes is counted as due.
func TestInterop_PoolWorkerDies_CallEndsByItsDeadline(t *testing.T) {
	c := dial(t, startScript(t, "pool.py"), Options{CancelPayload: cancelText, CancelGrace: 100 * time.Millisecond})
	for _, text := range []string{"first", "second"} { // both workers are there
		if r, err := c.Call(t.Context(), "run", []byte(text), nil); err != nil || string(r.Payload) != text {
			t.Fatalf("got %q, %v", r.Payload, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "run", []byte("die"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	for method, want := range map[string]string{"run": "after", "health": "well"} {
		if r, err := c.Call(t.Context(), method, []byte("after"), nil); err != nil || string(r.Payload) != want {
			t.Errorf("%s: got %q, %v", method, r.Payload, err)
		}
	}
	if s := c.Stats(); s != (Stats{Draining: 1, Sent: 6, Received: 5, Cancels: 1, Drained: 1}) {
		t.Errorf("got %+v", s)
	}
}
