package server

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/procwatch"
)

// pool is a spec with two workers behind a broker that does not notice their death.
func pool(t *testing.T) (Spec, *events) {
	if !seesWorkers {
		t.Skip("workers are not seen on this system")
	}
	if testing.Short() {
		t.Skip("a worker is dead after a second as a zombie")
	}
	sp := spec(t, "ipc", script{Workers: 2})
	ev := &events{}
	sp.Warm, sp.Events = "off", ev.add
	return sp, ev
}

// seen waits until the monitor has seen the workers: who dies before is nobody.
func seen(t *testing.T, s *Server) {
	t.Helper()
	hosttest.Until(t, "two workers", func() bool {
		n := 0
		for _, c := range s.proc.Children() {
			if isWorker(c.Argv) {
				n++
			}
		}
		return n == 2
	})
	<-time.After(zombieFor / 2) // one look of the monitor at least
}

// Scenario 18: a worker dies behind a live broker. Nothing new is sent, silent rollouts end with it,
// those that hear something go on, and then the generation ends.
func TestServer_WorkerLost(t *testing.T) {
	for _, how := range []string{"23", "kill"} {
		t.Run(how, func(t *testing.T) {
			sp, ev := pool(t)
			sp.SuspectAfter, sp.CancelGrace = 300*time.Millisecond, 50*time.Millisecond
			s := start(t, sp)
			seen(t, s)
			other, err := Start(t.Context(), Spec{Address: s.endpoint, Warm: "off"})
			if err != nil {
				t.Fatal(err)
			}
			lively := send(context.Background(), s, task{Do: "stream", Name: "lively"})
			silent := send(context.Background(), s, task{Do: "delta", Name: "silent"})
			run(t, other, task{Do: "wait", When: 2})
			run(t, other, task{Do: "dismiss", How: how})
			for !closed(s.Closing()) {
				nudge(t, other, 1, 20*time.Millisecond)
			}
			r := row{how: how}
			var x *WorkerLostError
			refused := run(t, s, task{Do: "reply"})
			if !errors.As(refused.err, &x) || x.Signal != r.signal() || x.Signal == 0 && x.Code != 23 || x.PID != s.PID() || x.Worker == s.PID() || len(x.Tail) == 0 {
				t.Fatalf("got %v, want the lost worker at once", refused.err)
			}
			if f := failure.Of(x); f.Kind != "worker_lost" || (f.Server.Code != nil) == (f.Server.Signal != 0) {
				t.Errorf("got failure %+v", f)
			}
			for done := false; !done; {
				select {
				case e := <-silent:
					if e.err != error(x) || len(e.reply.Partial) != 1 {
						t.Errorf("got %+v, %v; want the lost worker and what had come", e.reply, e.err)
					}
					done = true
				default:
					nudge(t, other, 1, 20*time.Millisecond)
				}
			}
			run(t, other, task{Do: "finish"})
			e := hosttest.Await(t, "the lively one's end", lively)
			if e.err != nil || e.reply.Episode == nil {
				t.Errorf("got %v, want an episode", e.err)
			}
			hosttest.Await(t, "Exited", s.Exited())
			if s.Err() != error(x) {
				t.Errorf("got %v, want the lost worker", s.Err())
			}
			if got := ev.kinds(); got != "ready 1, worker_exited 1, exited 1" {
				t.Errorf("got events %s", got)
			}
			_ = other.Stop(context.Background())
		})
	}
}

// When only silent rollouts are left, nobody waits for the answers to their cancels: a dead worker gives
// none.
func TestServer_WorkerLost_AllSilent(t *testing.T) {
	sp, _ := pool(t)
	sp.SuspectAfter, sp.CancelGrace = 300*time.Millisecond, 10*hosttest.Patience
	s := start(t, sp)
	seen(t, s)
	ends := []<-chan ending{
		send(context.Background(), s, task{Do: "deaf", Name: "a"}), send(context.Background(), s, task{Do: "deaf", Name: "b"}),
	}
	run(t, s, task{Do: "wait", When: 2})
	run(t, s, task{Do: "dismiss", How: "kill"})
	for _, ch := range ends {
		e := hosttest.Await(t, "an end", ch)
		if !errors.As(e.err, new(*WorkerLostError)) || len(e.reply.Partial) != 1 {
			t.Errorf("got %+v, %v; want the lost worker and what had come", e.reply, e.err)
		}
	}
}

// on_worker_exit = "warn", and a worker that ends with nothing to do.
func TestServer_WorkerExit_GoesOn(t *testing.T) {
	for _, c := range []struct{ name, mode, how string }{
		{"warn", "warn", "23"}, {"shrunk", "auto", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp, ev := pool(t)
			sp.OnWorkerExit = c.mode
			s := start(t, sp)
			seen(t, s)
			run(t, s, task{Do: "dismiss", How: c.how})
			hosttest.Until(t, "the event", func() bool { return ev.has(EventWorkerExited) })
			completes(t, s, "after")
			if closed(s.Closing()) {
				t.Error("closing")
			}
		})
	}
}

// A set goes down as soon as a worker is lost, and knows why.
func TestSet_WorkerLost(t *testing.T) {
	sp, _ := pool(t)
	set := startSet(t, sp)
	srv := bind(t, set)
	seen(t, srv)
	run(t, srv, task{Do: "dismiss", How: "kill"})
	hosttest.Await(t, "Down", set.Down())
	var x *WorkerLostError
	if err := set.Err(); !errors.As(err, &x) || x.Signal != syscall.SIGKILL {
		t.Errorf("got %v, want the lost worker", err)
	}
}

func TestIsWorker(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want bool
	}{
		{[]string{"python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)", "--multiprocessing-fork"}, true},
		{[]string{"python3", "-c", "from multiprocessing.resource_tracker import main;main(4)"}, false},
		{[]string{"sh"}, false},
		{nil, false},
	} {
		if got := isWorker(c.argv); got != c.want {
			t.Errorf("%q: got %v", c.argv, got)
		}
	}
}

// The real thing: workers of Python's multiprocessing are told from its resource tracker, and a dead
// one keeps how it ended for as long as nobody waits for it.
func TestChildren_Python(t *testing.T) {
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil || !seesWorkers {
		t.Skip("no python3, or workers are not seen on this system")
	}
	const broker = `
import multiprocessing, time
if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    lock = spawn.Lock()
    spawn.Process(target=time.sleep, args=(1000,)).start()
    time.sleep(1000)
`
	serve := filepath.Join(t.TempDir(), "serve") // a process of another name, as a script's is
	if err := os.Symlink(string(python), serve); err != nil {
		t.Fatal(err)
	}
	p, err := procwatch.Start(t.Context(), procwatch.Spec{Argv: []string{serve, "-c", broker}, Containment: procwatch.Group})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = p.Stop(context.Background(), "") }()
	var w procwatch.Descendant
	hosttest.Until(t, "its worker", func() bool {
		for _, c := range p.Children() {
			if isWorker(c.Argv) {
				w = c
			}
		}
		return w.PID != 0
	})
	if !mayBePool(p.PID()) {
		t.Error("its broker cannot be a pool")
	}
	if all := p.Children(); len(all) < 2 {
		t.Errorf("got children %v, want the resource tracker too", all)
	}
	if err := syscall.Kill(w.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	hosttest.Until(t, "its zombie", func() bool {
		for _, c := range p.Children() {
			if c.PID == w.PID && c.Started == w.Started && c.Ended {
				return c.Signaled && c.Signal == syscall.SIGKILL
			}
		}
		return false
	})
}
