package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
)

// nudge sends n deltas' worth of nudges, one every step, over a connection of its own.
func nudge(t *testing.T, s *Server, n int, step time.Duration) {
	t.Helper()
	tick := time.NewTicker(step)
	defer tick.Stop()
	for range n {
		<-tick.C
		run(t, s, task{Do: "nudge"})
	}
}

// stalled checks a *StalledError of s.
func stalled(t *testing.T, s *Server, err error) *StalledError {
	t.Helper()
	var e *StalledError
	if !errors.As(err, &e) || e.PID != s.PID() || e.Generation != 1 {
		t.Fatalf("got %v (%T), want a *StalledError", err, err)
	}
	if f := failure.Of(err); f.Source != failure.Server || f.Kind != "stalled" || f.Server == nil {
		t.Errorf("got failure %+v", f)
	}
	return e
}

// stall_after counts silence, not time; one silent rollout of a living server ends alone.
func TestServer_StallAfter(t *testing.T) {
	sp := spec(t, "ipc", script{})
	sp.StallAfter = 1500 * time.Millisecond // a busy machine may well be silent for a tenth of it
	s := start(t, sp)
	ch := send(context.Background(), s, task{Do: "stream", Name: "slow"})
	run(t, s, task{Do: "wait", When: 1})
	nudge(t, s, 12, 150*time.Millisecond) // longer than stall_after
	select {
	case e := <-ch:
		t.Fatalf("ended in spite of its deltas: %v", e.err)
	default:
	}
	e := hosttest.Await(t, "the end", ch)
	if x := stalled(t, s, e.err); x.Deltas != 13 || x.Silent < sp.StallAfter || x.First {
		t.Errorf("got %+v", x)
	}
	if len(e.reply.Partial) != 1 {
		t.Errorf("got partial %+v", e.reply.Partial)
	}
	completes(t, s, "after")
	if closed(s.Closing()) {
		t.Errorf("the living server is closing: %v", s.Err())
	}
}

// A server that does not even answer the cancel is the one that hangs: its generation ends.
func TestServer_StallAfter_Hung(t *testing.T) {
	sp := spec(t, "ipc", script{})
	sp.StallAfter, sp.CancelGrace = 100*time.Millisecond, 100*time.Millisecond
	s := start(t, sp)
	ends := []<-chan ending{
		send(context.Background(), s, task{Do: "hold"}), send(context.Background(), s, task{Do: "hold"}),
	}
	suspend(t, s)
	for _, ch := range ends {
		stalled(t, s, hosttest.Await(t, "an end", ch).err)
	}
	hosttest.Await(t, "Exited", s.Exited())
	stalled(t, s, s.Err())
	if err := syscall.Kill(s.PID(), 0); err == nil {
		t.Error("its process lives")
	}
}

func TestServer_FirstReply(t *testing.T) {
	sp := spec(t, "ipc", script{})
	sp.FirstReply = 150 * time.Millisecond
	s := start(t, sp)
	ends := []<-chan ending{
		send(context.Background(), s, task{Do: "hold"}), send(context.Background(), s, task{Do: "hold"}),
	}
	for _, ch := range ends {
		e := hosttest.Await(t, "an end", ch)
		if x := stalled(t, s, e.err); !x.First || e.err != s.Err() || !strings.Contains(x.Error(), "first_reply") {
			t.Errorf("got %+v, want the same value for all", x)
		}
	}
}

// first_reply is over with the first reply.
func TestServer_FirstReply_Answered(t *testing.T) {
	sp := spec(t, "ipc", script{})
	sp.FirstReply = 100 * time.Millisecond
	s := start(t, sp)
	completes(t, s, "one")
	ch := send(context.Background(), s, task{Do: "hold"})
	select {
	case e := <-ch:
		t.Errorf("ended: %v", e.err)
	case <-time.After(4 * sp.FirstReply): // nothing to wait for: nothing may happen
	}
	if n, silent := s.Load(); n != 1 || silent < sp.FirstReply {
		t.Errorf("got load %d, silent %v", n, silent)
	}
	run(t, s, task{Do: "die", How: "0"})
	hosttest.Await(t, "the end", ch)
}

// Missing health is a warning, and nothing fails.
func TestServer_Health(t *testing.T) {
	sp := spec(t, "ipc", script{})
	ev := &events{}
	sp.HealthEvery, sp.Events = 50*time.Millisecond, ev.add
	s := start(t, sp)
	ch := send(context.Background(), s, task{Do: "stream", Name: "slow"})
	run(t, s, task{Do: "wait", When: 1})
	suspend(t, s)
	hosttest.Until(t, "the warning", func() bool { return ev.has(EventUnresponsive) })
	if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	run(t, s, task{Do: "finish"})
	if e := hosttest.Await(t, "the end", ch); e.err != nil {
		t.Error(e.err)
	}
	ev.mu.Lock()
	defer ev.mu.Unlock()
	for _, e := range ev.list {
		var u *UnresponsiveError
		if e.Kind == EventUnresponsive && (!errors.As(e.Err, &u) || u.InFlight != 1) {
			t.Errorf("got %v", e.Err)
		}
	}
}

func TestServer_Warm(t *testing.T) {
	probed := func(t *testing.T, sp Spec) string {
		return text(t, run(t, start(t, sp), task{Do: "stats"}))
	}
	t.Run("on", func(t *testing.T) {
		sp := spec(t, "tcp", script{})
		sp.Warm = "on"
		if got := probed(t, sp); got != "held 0 torndown 0 probed 1" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("on and cold", func(t *testing.T) {
		sp := spec(t, "ipc", script{ProbeHangs: true})
		sp.Warm, sp.StartTimeout, sp.CancelGrace = "on", time.Second, 50*time.Millisecond
		_, err := Start(t.Context(), sp)
		var nr *NotReadyError
		if !errors.As(err, &nr) || !nr.Warming || !strings.Contains(err.Error(), "none of its workers") {
			t.Errorf("got %v, want not ready while warming", err)
		}
		nothingLeft(t, sp)
	})
	t.Run("on and its worker dies", func(t *testing.T) {
		sp, ev := pool(t)
		sp.Warm, sp.CancelGrace = "on", 50*time.Millisecond
		sp = rescript(t, sp, func(s *script) { s.ProbeHangs, s.WorkerDies = true, "23" })
		_, err := Start(t.Context(), sp)
		var nr *NotReadyError
		var lost *WorkerLostError
		if !errors.As(err, &nr) || !errors.As(nr.LastProbe, &lost) || lost.Code != 23 {
			t.Errorf("got %v, want the lost worker", err)
		}
		if got := ev.kinds(); got != "worker_exited 1, not_ready 1" {
			t.Errorf("got events %s", got)
		}
		nothingLeft(t, sp)
	})
	t.Run("auto without a pool", func(t *testing.T) {
		if got := probed(t, spec(t, "ipc", script{Workers: 1})); got != "held 0 torndown 0 probed 0" {
			t.Errorf("got %q: no interpreter of Python, no pool", got)
		}
	})
	t.Run("auto with a pool", func(t *testing.T) {
		if !seesWorkers {
			t.Skip("workers are not seen on this system")
		}
		sp := spec(t, "ipc", script{Workers: 1})
		python := filepath.Join(t.TempDir(), "python3")
		if err := os.Symlink(sp.Argv[0], python); err != nil {
			t.Fatal(err)
		}
		sp.Argv[0] = python
		if got := probed(t, sp); got != "held 0 torndown 0 probed 1" {
			t.Errorf("got %q", got)
		}
	})
}

func TestSpec_Check(t *testing.T) {
	for _, sp := range []Spec{{Warm: "hot"}, {OnExit: "shrug"}, {OnWorkerExit: "shrug"}, {OnWorkerExit: "fail", Address: "tcp://127.0.0.1:1"}} {
		_, err := Start(t.Context(), sp)
		if !errors.As(err, new(*StartError)) {
			t.Errorf("%+v: got %v, want a *StartError", sp, err)
		}
	}
}
