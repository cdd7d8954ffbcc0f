package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
)

// events collects what a server tells.
type events struct {
	mu   sync.Mutex
	list []Event
}

func (e *events) add(ev Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

// kinds is "ready 1, exited 1": each kind with its generation.
func (e *events) kinds() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for _, ev := range e.list {
		out = append(out, fmt.Sprintf("%s %d", ev.Kind, ev.Generation))
	}
	return strings.Join(out, ", ")
}

func (e *events) has(kind string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.list, func(ev Event) bool { return ev.Kind == kind })
}

// startSet starts a set of which nothing may be left.
func startSet(t *testing.T, specs ...Spec) *Set {
	t.Helper()
	s, err := StartSet(t.Context(), specs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop(now) }()
		if err := hosttest.Await(t, "Stop", stopped); err != nil {
			t.Error(err)
		}
		for i, srv := range s.Servers() {
			gone(t, srv, specs[i])
		}
	})
	return s
}

// bind gets a living server.
func bind(t *testing.T, s *Set) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hosttest.Patience)
	defer cancel()
	srv, release, err := s.Bind(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return srv
}

// restarting is a spec with on_exit = "restart" and short pauses.
func restarting(t *testing.T, s script, limit int) (Spec, *events) {
	sp := spec(t, "ipc", s)
	ev := &events{}
	sp.OnExit, sp.MaxRestarts, sp.Events = "restart", limit, ev.add
	sp.LogPath = filepath.Join(t.TempDir(), "server-1-{generation}.log")
	sp.LogRel = "logs/attempt_1/server-1-{generation}.log"
	sp.pause = func(time.Duration) time.Duration { return time.Millisecond }
	return sp, ev
}

// Scenario 17 and on_exit = "restart": a new generation, to which nothing of the old one is credited,
// until the budget is used up.
func TestSet_Restart(t *testing.T) {
	sp, ev := restarting(t, script{}, 2)
	set := startSet(t, sp)
	for generation := 1; ; generation++ {
		srv := bind(t, set)
		if srv.Generation() != generation || srv.Log() != fmt.Sprintf("logs/attempt_1/server-1-%d.log", generation) {
			t.Fatalf("got generation %d with log %s, want %d", srv.Generation(), srv.Log(), generation)
		}
		completes(t, srv, fmt.Sprint("of ", generation))
		held := send(context.Background(), srv, task{Do: "hold"})
		die := send(context.Background(), srv, task{Do: "die", How: "23", When: 1})
		e := hosttest.Await(t, "the end", held)
		var x *ExitedError
		if !errors.As(e.err, &x) || x.Generation != generation || x.Code != 23 || x.InFlight != 2 {
			t.Fatalf("got %v, want the exit of generation %d", e.err, generation)
		}
		hosttest.Await(t, "the end", die)
		if generation == 3 {
			break
		}
		if closed(set.Down()) {
			t.Fatalf("down, though there is a restart left: %v", set.Err())
		}
		next := bind(t, set)
		if e := run(t, srv, task{Do: "reply"}); e.err != x {
			t.Errorf("a call of the old generation: got %v, want its exit", e.err)
		}
		if next.PID() == srv.PID() {
			t.Errorf("the same process")
		}
		if log, err := os.ReadFile(strings.ReplaceAll(sp.LogPath, "{generation}", fmt.Sprint(generation))); err != nil || string(log) != "last words 23\n" {
			t.Errorf("got log %q, %v", log, err)
		}
	}
	hosttest.Await(t, "Down", set.Down())
	var gave *GaveUpError
	if err := set.Err(); !errors.As(err, &gave) || gave.Restarts != 2 || failure.Of(err).Kind != "exited" {
		t.Errorf("got %v, want a *GaveUpError", err)
	}
	if e := run(t, bind(t, set), task{Do: "reply"}); !errors.As(e.err, new(*ExitedError)) {
		t.Errorf("got %v, want the last exit", e.err)
	}
	want := "ready 1, exited 1, backing_off 2, ready 2, exited 2, backing_off 3, ready 3, exited 3, gave_up 3"
	if got := ev.kinds(); got != want {
		t.Errorf("got events %s\nwant %s", got, want)
	}
}

// A generation that does not become ready counts as a restart.
func TestSet_Restart_NotReady(t *testing.T) {
	sp, ev := restarting(t, script{Beacon: filepath.Join(t.TempDir(), "lives"), Lives: 1, Early: "3"}, 2)
	set := startSet(t, sp)
	run(t, bind(t, set), task{Do: "die", How: "kill"})
	hosttest.Await(t, "Down", set.Down())
	var nr *NotReadyError
	if err := set.Err(); !errors.As(err, &nr) || nr.Exited == nil || nr.Exited.Code != 3 || nr.Exited.Generation != 3 {
		t.Errorf("got %v, want the third generation not ready", err)
	}
	want := "ready 1, exited 1, backing_off 2, not_ready 2, backing_off 3, not_ready 3, gave_up 1"
	if got := ev.kinds(); got != want {
		t.Errorf("got events %s\nwant %s", got, want)
	}
}

// Those who wait for a new generation leave with their ctx and with Stop, and Stop ends a back-off.
func TestSet_Stop_BackingOff(t *testing.T) {
	sp, ev := restarting(t, script{}, 2)
	sp.pause = func(time.Duration) time.Duration { return time.Hour }
	set := startSet(t, sp)
	run(t, bind(t, set), task{Do: "die", How: "0"})
	hosttest.Until(t, "the back-off", func() bool { return ev.has(EventBackingOff) })
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("interrupted")
	cancel(why)
	if _, _, err := set.Bind(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	bound := make(chan *Server, 1)
	go func() { srv, _, _ := set.Bind(context.Background()); bound <- srv }()
	if err := set.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if e := run(t, hosttest.Await(t, "Bind", bound), task{Do: "reply"}); !errors.As(e.err, new(*ExitedError)) {
		t.Errorf("got %v, want the exit", e.err)
	}
	if set.Err() != nil || closed(set.Down()) {
		t.Errorf("got %v: a stop is no failure", set.Err())
	}
}

// instances = N with on_exit = "fail": one dies, the other finishes what it has.
func TestSet_Instances(t *testing.T) {
	specs := []Spec{spec(t, "ipc", script{}), spec(t, "tcp", script{})}
	specs[0].Instance, specs[1].Instance = 1, 2
	set := startSet(t, specs...)
	var of [3]int
	for range 6 {
		of[bind(t, set).Instance()]++
	}
	if of[1] != 3 || of[2] != 3 {
		t.Errorf("got %v, want the load shared", of)
	}
	a, b := set.Servers()[0], set.Servers()[1]
	kept := send(context.Background(), b, task{Do: "stream", Name: "kept"})
	run(t, b, task{Do: "wait", When: 1})
	if err := syscall.Kill(a.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	hosttest.Await(t, "Down", set.Down())
	var x *ExitedError
	if err := set.Err(); !errors.As(err, &x) || x.Instance != 1 || x.Signal != syscall.SIGKILL {
		t.Errorf("got %v, want the exit of instance 1", err)
	}
	if srv := bind(t, set); srv != b {
		t.Errorf("got instance %d, want the living one", srv.Instance())
	}
	run(t, b, task{Do: "finish"})
	e := hosttest.Await(t, "the end", kept)
	if e.err != nil {
		t.Fatal(e.err)
	}
	whole(t, e.reply, "kept")
}

// One that does not become ready takes the others down.
func TestStartSet_NotReady(t *testing.T) {
	specs := []Spec{spec(t, "ipc", script{}), spec(t, "ipc", script{Early: "3"})}
	_, err := StartSet(t.Context(), specs)
	if !errors.As(err, new(*NotReadyError)) {
		t.Errorf("got %v, want a *NotReadyError", err)
	}
	nothingLeft(t, specs[0])
	nothingLeft(t, specs[1])
}

func TestRestarts(t *testing.T) {
	now := time.Unix(0, 0)
	r := restarts{limit: 5, window: 10 * time.Minute}
	for i := range 5 {
		pause, ok := r.next(now, 0)
		if !ok || pause < backoffMin || pause > backoffMax || i == 0 && pause > 2*backoffMin {
			t.Fatalf("restart %d: got %v, %v", i, pause, ok)
		}
		now = now.Add(time.Minute)
	}
	if _, ok := r.next(now, 0); ok {
		t.Error("a sixth within the window")
	}
	now = time.Unix(0, 0).Add(r.window)
	if _, ok := r.next(now, 0); !ok {
		t.Error("none, though the first has left the window")
	}
	if _, ok := r.next(now, 0); ok {
		t.Error("two, though only one has left the window")
	}
	r = restarts{limit: 1000, window: time.Hour}
	longest := time.Duration(0)
	for range 1000 {
		pause, _ := r.next(now, time.Minute)
		longest = max(longest, pause)
	}
	if longest > backoffMax || longest < backoffMax/2 {
		t.Errorf("got at most %v, want it near %v", longest, backoffMax)
	}
	if pause, _ := r.next(now.Add(2*time.Hour), time.Hour); pause > 2*backoffMin {
		t.Errorf("got %v after a long life, want a short pause", pause)
	}
	if _, ok := (&restarts{window: time.Hour}).next(now, 0); ok {
		t.Error("a restart with max_restarts = 0")
	}
}
