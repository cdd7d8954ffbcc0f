package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
)

// row is one way to die.
type row struct {
	how, transport string
	n              int // in flight
}

func (r row) String() string { return fmt.Sprintf("%s/%s/%d", r.how, r.transport, r.n) }

// signal is what how means; 0: the exit code.
func (r row) signal() syscall.Signal {
	return map[string]syscall.Signal{"kill": syscall.SIGKILL, "segv": syscall.SIGSEGV}[r.how]
}

func transports() []string { return []string{"ipc", "tcp"} }

// rows gives all ways, or so many that each pair of values is among them.
func rows(counts ...int) (out []row) {
	for i, how := range []string{"0", "23", "kill", "segv"} {
		for j, n := range counts {
			if long() {
				out = append(out, row{how, "ipc", n}, row{how, "tcp", n})
				continue
			}
			out = append(out, row{how, transports()[(i+j)%2], n})
		}
	}
	return out
}

// each runs f for every row.
func each(t *testing.T, list []row, f func(t *testing.T, r row)) {
	for _, r := range list {
		t.Run(r.String(), func(t *testing.T) { f(t, r) })
	}
}

// exited checks everything that an exit's error says, and returns it.
func exited(t *testing.T, s *Server, sp Spec, r row, err error) *ExitedError {
	t.Helper()
	var e *ExitedError
	if !errors.As(err, &e) {
		t.Fatalf("got %v (%T), want an *ExitedError", err, err)
	}
	died(t, e, sp, r)
	if e.PID != s.PID() || e.InFlight != r.n || !e.Drained {
		t.Errorf("got pid %d, %d in flight, drained %v; want %d, %d, true", e.PID, e.InFlight, e.Drained, s.PID(), r.n)
	}
	if s.Err() != error(e) {
		t.Errorf("Err is %v, want the same value", s.Err())
	}
	return e
}

// died checks what an exit's error says of the process alone.
func died(t *testing.T, e *ExitedError, sp Spec, r row) {
	t.Helper()
	sig, code := r.signal(), 0
	if sig == 0 {
		fmt.Sscan(r.how, &code)
	}
	if e.Signal != sig || e.Code != code {
		t.Errorf("got code %d, signal %d; want %d, %d", e.Code, e.Signal, code, sig)
	}
	if e.Attempt != 1 || e.Instance != 1 || e.Generation != 1 || e.PID <= 0 || e.Uptime <= 0 || e.Requested {
		t.Errorf("got %+v", e)
	}
	words := "last words " + r.how
	if len(e.Tail) == 0 || e.Tail[len(e.Tail)-1] != words {
		t.Errorf("got tail %q, want %q at its end", e.Tail, words)
	}
	b, err := os.ReadFile(sp.LogPath)
	log, _, _ := strings.Cut(string(b), "[wevalr: ") // a flood is more than the log keeps up with
	if err != nil || !strings.HasSuffix(log, words+"\n") {
		t.Errorf("got log …%q, %v; want %q at its end", log[max(0, len(log)-200):], err, words)
	}
	if e.LogPath != sp.LogPath || e.LogRel != sp.LogRel {
		t.Errorf("got logs %q, %q", e.LogPath, e.LogRel)
	}
	how := fmt.Sprintf("exited with code %d", code)
	if sig != 0 {
		how = fmt.Sprintf("was ended by signal %d (%v)", int(sig), sig)
	}
	text := e.Error()
	for _, want := range []string{fmt.Sprintf("(generation 1, pid %d) %s after ", e.PID, how), "log: " + sp.LogPath, words} {
		if !strings.Contains(text, want) {
			t.Errorf("text %q lacks %q", text, want)
		}
	}
	f := failure.Of(e)
	if f.Source != failure.Server || f.Kind != "exited" || f.Retryable || f.Server == nil || f.Server.Log != sp.LogRel || strings.Contains(f.Message, sp.LogPath) {
		t.Fatalf("got failure %+v", f)
	}
	if (f.Server.Code != nil) == (f.Server.Signal != 0) || f.Server.Signal != int(sig) || sig == 0 && *f.Server.Code != code {
		t.Errorf("got facts %+v, want code %d xor signal %d", f.Server, code, sig)
	}
}

// Scenarios 2, 3, 7 and 11: it dies with 1, 64 and 1,000 in flight; what was completed stays so, and
// who comes later gets the same error.
func TestServer_Exit_InFlight(t *testing.T) {
	each(t, rows(1, 64, 1000), func(t *testing.T, r row) {
		sp := spec(t, r.transport, script{})
		s := start(t, sp)
		completes(t, s, "before")
		ends := make([]<-chan ending, 0, r.n)
		for range r.n - 1 {
			ends = append(ends, send(context.Background(), s, task{Do: "hold"}))
		}
		ends = append(ends, send(context.Background(), s, task{Do: "die", How: r.how, When: r.n - 1}))
		first := hosttest.Await(t, "the first end", ends[0])
		exited(t, s, sp, r, first.err)
		for _, ch := range ends[1:] {
			if e := hosttest.Await(t, "an end", ch); e.err != first.err || e.reply.Episode != nil {
				t.Fatalf("got %v, want the same value for all", e.err)
			}
		}
		hosttest.Await(t, "Exited", s.Exited())
		if e := run(t, s, task{Do: "reply"}); e.err != first.err {
			t.Errorf("later call: got %v, want the same value", e.err)
		}
	})
}

// Scenario 1.
func TestServer_Exit_BeforeReady(t *testing.T) {
	each(t, rows(0), func(t *testing.T, r row) {
		sp := spec(t, r.transport, script{Early: r.how})
		_, err := Start(t.Context(), sp)
		var nr *NotReadyError
		if !errors.As(err, &nr) || nr.Exited == nil {
			t.Fatalf("got %v, want a *NotReadyError with the exit", err)
		}
		died(t, nr.Exited, sp, r)
		if f := failure.Of(err); f.Kind != "not_ready" || f.Server == nil {
			t.Errorf("got failure %+v", f)
		}
		if !strings.Contains(err.Error(), "before it was ready") || !strings.Contains(err.Error(), "last words "+r.how) {
			t.Errorf("got text %q", err)
		}
		nothingLeft(t, sp)
	})
}

// Scenario 5, once for each way; TestServer_ReplyWins repeats it.
func TestServer_Exit_AfterReply(t *testing.T) {
	each(t, rows(0), func(t *testing.T, r row) {
		sp := spec(t, r.transport, script{})
		s := start(t, sp)
		e := run(t, s, task{Do: "cut", Name: "whole", How: r.how})
		if e.err != nil {
			t.Fatalf("the reply lost: %v", e.err)
		}
		whole(t, e.reply, "whole")
		hosttest.Await(t, "Exited", s.Exited())
		exited(t, s, sp, r, s.Err())
	})
}

// Scenario 6: half a reply is no short episode, and what came before it is kept as partial.
func TestServer_Exit_MidReply(t *testing.T) {
	each(t, rows(1), func(t *testing.T, r row) {
		sp := spec(t, r.transport, script{})
		s := start(t, sp)
		e := run(t, s, task{Do: "cut", Name: "half", How: r.how, Mid: true})
		if e.reply.Episode != nil {
			t.Fatalf("got %+v of half a reply", e.reply.Episode)
		}
		if len(e.reply.Partial) != 1 || e.reply.Partial[0].ID != "t-half" {
			t.Errorf("got partial %+v, want its trace", e.reply.Partial)
		}
		exited(t, s, sp, r, e.err)
	})
}

// Scenario 4: the server takes nothing any more, so the calls queue; when it dies they have never
// been sent, and are not counted as in flight.
func TestServer_Exit_Queued(t *testing.T) {
	for _, transport := range transports() {
		t.Run(transport, func(t *testing.T) {
			sp := spec(t, transport, script{})
			s := start(t, sp)
			suspend(t, s)
			const n = 8
			pad := strings.Repeat("x", 16<<20)
			var ends []<-chan ending
			for range n {
				ends = append(ends, send(context.Background(), s, task{Do: "hold", Pad: pad}))
			}
			hosttest.Until(t, "all calls queue", func() bool { return s.client.Stats().Pending == n })
			if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			first := hosttest.Await(t, "an end", ends[0])
			for _, ch := range ends[1:] {
				if e := hosttest.Await(t, "an end", ch); e.err != first.err {
					t.Fatalf("got %v, want the same value", e.err)
				}
			}
			var e *ExitedError
			if !errors.As(first.err, &e) || e.Signal != syscall.SIGKILL || e.InFlight >= n/2 {
				t.Errorf("got %v, want killed with few in flight", first.err)
			}
		})
	}
}
