package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

// held is a rollout that stays with the server until it is cancelled, and leaves a mark when it is there.
func held(t *testing.T, key string) (out abi.Task, there func() bool) {
	t.Helper()
	mark := filepath.Join(t.TempDir(), key)
	return task(key, order{Do: "hold", Once: mark}), func() bool {
		_, err := os.Stat(mark)
		return err == nil
	}
}

// byKey are the finish lines of tries by task key.
func byKey(t *testing.T, run *journal.Run) map[string]record {
	t.Helper()
	out := map[string]record{}
	for _, r := range records(t, run, "finish") {
		if _, twice := out[r.Key]; twice {
			t.Errorf("%s finished twice", r.Key)
		}
		out[r.Key] = r
	}
	return out
}

func TestDrain_LetsFinishWhatIsInFlight(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	r, w, drain := newRun(t), newWatcher(), make(chan struct{})
	s := spec(r, spool(t, r, task("a", order{Once: mark, Seen: 2}), task("b"), task("c"), task("d")), startServer(t, 1, 1))
	s.MaxConcurrent, s.Drain, s.Observer = 1, drain, w
	// Task a waits for a second run, which this test sends itself once admission has ended.
	done := start(context.Background(), s)
	hosttest.Until(t, "the first run", func() bool { _, err := os.Stat(mark); return err == nil })
	close(drain)
	srv, release, err := s.Servers.Bind(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	req, err := s.Request.build(map[string]any{"prompt": "p"}, origin{key: "other"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Until(t, "the end of admission", func() bool { return isClosed(drain) })
	if _, err := srv.Run(context.Background(), req, nil); err != nil {
		t.Fatal(err)
	}
	got := hosttest.Await(t, "the end of the attempt", done)
	if got.err != nil || !errors.Is(got.Stopped, ErrDrained) {
		t.Fatalf("got %v, stopped by %v", got.err, got.Stopped)
	}
	if all := byKey(t, r); len(all) != 1 || all["a"].Outcome != failure.Completed {
		t.Errorf("got %+v, want a alone, completed", all)
	}
	if n := r.Counts(1); n.NeverRun != 3 || n.Owed != 3 {
		t.Errorf("got %+v", n)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A drain that nothing is left for is none.
func TestDrain_WithNothingOwedIsNoStop(t *testing.T) {
	r, drain := newRun(t), make(chan struct{})
	s := spec(r, spool(t, r), noServers{})
	s.Drain = drain
	close(drain)
	must(t, s)
}

type noServers struct{}

func (noServers) Bind(context.Context) (*server.Server, func(), error) {
	panic("nothing is to be sent")
}
func (noServers) Down() <-chan struct{} { return nil }

var errStop = errors.New("the operator has had enough")

// Every accepted request ends exactly once: cancelled ones are cancelled, with our cause, and owed.
func TestCancel_IsNoError(t *testing.T) {
	a, aThere := held(t, "a")
	b, bThere := held(t, "b")
	r, w := newRun(t), newWatcher()
	s := spec(r, spool(t, r, a, b, task("c")), startServer(t, 1, 1))
	s.MaxConcurrent, s.Observer, s.Retries = 2, w, 3
	ctx, cancel := context.WithCancelCause(context.Background())
	done := start(ctx, s)
	hosttest.Until(t, "both runs", func() bool { return aThere() && bThere() })
	cancel(errStop)
	got := hosttest.Await(t, "the end of the attempt", done)
	if got.err != nil || !errors.Is(got.Stopped, errStop) {
		t.Fatalf("got %v, stopped by %v", got.err, got.Stopped)
	}
	all := byKey(t, r)
	for _, key := range []string{"a", "b"} {
		if f := all[key].Failure; all[key].Outcome != failure.Dropped || f == nil || f.Source != failure.Cancelled || f.Kind != "drain" {
			t.Errorf("%s: got %+v, want cancelled/drain", key, all[key])
		}
		if got := w.ended[key+"#0"]; len(got) != 1 {
			t.Errorf("%s: got told of %v, want one end", key, got)
		}
	}
	if n := r.Counts(1); n.Cancelled != 2 || n.NeverRun != 1 || n.Errors != 0 || n.Owed != 3 {
		t.Errorf("got %+v", n)
	}
	if parts := lines[journal.Partial](t, r, journal.PartialFile); len(parts) != 2 || parts[0].Reason != "drain" {
		t.Errorf("got %+v, want what had arrived of both", parts)
	}
}

// judge is the one place that tells what happened from what came: a reply that arrived wins.
func TestJudge_ReplyWinsOverCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStop)
	fast, cancel := context.WithCancelCause(context.Background())
	cancel(ErrFailFast)
	good := &wire.Episode{OK: true, Traces: []wire.Trace{{OK: true}}}
	exited := &server.ExitedError{Ending: server.Ending{Code: 23}}
	for name, c := range map[string]struct {
		ctx  context.Context
		b    brought
		want failure.Outcome
		kind string
	}{
		"reply and cancel":        {ctx, brought{episode: good}, failure.Completed, ""},
		"cancel":                  {ctx, brought{err: errStop}, failure.Dropped, "drain"},
		"cancel, wrapped":         {ctx, brought{err: fmt.Errorf("call: %w", errStop)}, failure.Dropped, "drain"},
		"fail_fast":               {fast, brought{err: ErrFailFast}, failure.Dropped, "fail_fast"},
		"exit and cancel":         {ctx, brought{err: exited}, failure.Errored, "exited"},
		"our own stop, cancelled": {ctx, brought{err: &server.ExitedError{Requested: true}}, failure.Dropped, "drain"},
		"nobody foresaw it":       {context.Background(), brought{err: errStop}, failure.Errored, "internal"},
		"a ctx that is not ours":  {context.Background(), brought{err: context.Canceled}, failure.Dropped, "caller"},
	} {
		got := judge(c.ctx, c.b)
		if got.outcome != c.want || (got.failure == nil) != (c.kind == "") || c.kind != "" && got.failure.Kind != c.kind {
			t.Errorf("%s: got %s, %v, want %s, %s", name, got.outcome, got.failure, c.want, c.kind)
		}
	}
}

// fail_fast cancels the others, and that is no error of theirs.
func TestFailFast_CancelsTheOthers(t *testing.T) {
	a, _ := held(t, "a")
	r := newRun(t)
	s := spec(r, spool(t, r, a, task("bad", order{Do: "peer", Held: 1}), task("c")), startServer(t, 1, 1))
	s.MaxConcurrent, s.FailFast = 2, true
	got := run(t, s)
	if got.err != nil || !errors.Is(got.Stopped, ErrFailFast) {
		t.Fatalf("got %v, stopped by %v", got.err, got.Stopped)
	}
	all := byKey(t, r)
	if f := all["a"].Failure; all["a"].Outcome != failure.Dropped || f.Kind != "fail_fast" {
		t.Errorf("a: got %+v, want cancelled/fail_fast", all["a"])
	}
	if all["bad"].Outcome != failure.Errored || len(all) != 2 {
		t.Errorf("got %+v", all)
	}
}

// The server exits with calls in flight and others queued behind the limit: the first are errors of
// its, the others are never sent, and a resume owes all of them and repeats nothing that finished.
func TestExit_KeepsFinishedOwesTheRest(t *testing.T) {
	const n = 4
	list := []abi.Task{task("done")}
	for i := range n - 1 {
		list = append(list, task(fmt.Sprint("held-", i), order{Do: "hold", Once: filepath.Join(t.TempDir(), "held")}))
	}
	list = append(list, task("die", order{Do: "die", Held: n - 1, Once: filepath.Join(t.TempDir(), "died")}))
	for i := range 50 {
		list = append(list, task(fmt.Sprint("queued-", i)))
	}
	first, w := newRun(t), newWatcher()
	set := startServer(t, 1, 1)
	s := spec(first, spool(t, first, list...), set)
	s.MaxConcurrent, s.Retries, s.Observer = n, 2, w
	got := run(t, s)
	if got.err != nil || got.Stopped == nil {
		t.Fatalf("got %v, stopped by %v", got.err, got.Stopped)
	}
	all := byKey(t, first)
	for key, r := range all {
		if key == "done" {
			continue
		}
		f := r.Failure
		if r.Outcome != failure.Errored || f.Source != failure.Server || f.Kind != "exited" || f.Server == nil || f.Server.Code == nil || *f.Server.Code != 23 || f.Server.Generation != 1 {
			t.Errorf("%s: got %+v, want exited with code 23", key, r)
		}
	}
	if len(all) != n+1 || all["done"].Outcome != failure.Completed {
		t.Errorf("got %d finishes, want %d", len(all), n+1)
	}
	if c := first.Counts(1); c.Errors != n || c.NeverRun != 50 || c.Owed != n+50 || c.Retried != 0 {
		t.Errorf("got %+v", c)
	}
	if e, ok := errors.AsType[*server.ExitedError](set.Err()); !ok || e.InFlight != n || !e.Drained {
		t.Errorf("got %v, want %d in flight, drained", set.Err(), n)
	}
	if len(w.dispatched) != n+1 {
		t.Errorf("got %d dispatched, want %d: the queued are never sent", len(w.dispatched), n+1)
	}

	second, w := reopen(t, first), newWatcher()
	s = spec(second, spool(t, second, list...), startServer(t, 1, 2))
	s.Observer = w
	must(t, s)
	if c := second.Counts(1); c.Completed != n+51 || c.Owed != 0 || c.Retried != n {
		t.Errorf("got %+v", c)
	}
	if w.dispatched["done#0"] != 0 {
		t.Error("the finished rollout was run again")
	}
}

// A server that has ended gets nothing: nothing is dispatched, and no try is counted.
func TestExit_BeforeTheFirstDispatch(t *testing.T) {
	set := startServer(t, 1, 1)
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := set.Stop(now); err != nil {
		t.Fatal(err)
	}
	r := newRun(t)
	got := run(t, spec(r, spool(t, r, task("a"), task("b")), set))
	if got.err != nil || !errors.Is(got.Stopped, errServerDown) {
		t.Fatalf("got %v, stopped by %v", got.err, got.Stopped)
	}
	if d := records(t, r, "dispatch"); len(d) != 0 {
		t.Errorf("got %+v dispatched", d)
	}
}

// With two servers, the death of one ends admission, and the other finishes what it has.
func TestExit_OfOneOfTwo(t *testing.T) {
	r := newRun(t)
	mark := filepath.Join(t.TempDir(), "mark")
	list := []abi.Task{task("die", order{Do: "die", Seen: 1, Once: mark}), task("other", order{Seen: 2})}
	set := startServer(t, 2, 1)
	s := spec(r, spool(t, r, list...), set)
	s.MaxConcurrent = 2
	done := start(context.Background(), s)
	hosttest.Await(t, "the death", set.Down())
	for _, srv := range set.Servers() { // the living one gets the run that the other rollout waits for
		req, err := s.Request.build(map[string]any{}, origin{key: "x"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = srv.Run(context.Background(), req, nil)
	}
	if got := hosttest.Await(t, "the end of the attempt", done); got.err != nil {
		t.Fatal(got.err)
	}
	all := byKey(t, r)
	if all["die"].Outcome != failure.Errored || all["other"].Outcome != failure.Completed {
		t.Errorf("got %+v", all)
	}
}

// A disk that takes no records ends the attempt, and what was committed stays.
func TestDisk_EndsTheAttempt(t *testing.T) {
	a, there := held(t, "a")
	r := newRun(t)
	list := []abi.Task{a, task("good", order{Held: 1}), task("torn", order{Do: "garbage", Held: 1})}
	for i := range 200 {
		list = append(list, task(fmt.Sprint("more-", i)))
	}
	// What had arrived of a torn reply goes to a file that cannot be one.
	if err := os.Mkdir(filepath.Join(r.Dir(), journal.PartialFile), 0o755); err != nil {
		t.Fatal(err)
	}
	s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
	s.MaxConcurrent = 2
	got := run(t, s)
	if f := failure.Of(got.err); got.err == nil || f.Source != failure.Host || f.Kind != "disk" {
		t.Fatalf("got %v, want a disk error", got.err)
	}
	if got.Stopped == nil || !there() {
		t.Errorf("stopped by %v", got.Stopped)
	}
	n := r.Counts(1)
	if n.Completed < 1 || n.Completed > 150 {
		t.Errorf("got %+v, want some of it", n)
	}
	if err := os.Remove(filepath.Join(r.Dir(), journal.PartialFile)); err != nil {
		t.Fatal(err)
	}
	_ = r.Close(journal.CloseEvent{}) // says what the disk said
	r, err := journal.Open(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(journal.CloseEvent{}) })
	if again := r.Counts(1); again.Completed < n.Completed {
		t.Errorf("got %d completed on disk, want %d", again.Completed, n.Completed)
	}
}

// Resuming repeats nothing that finished, and loses nothing: `retry` picks errors only.
func TestResume_RepeatsNothing(t *testing.T) {
	first := newRun(t)
	list := []abi.Task{task("good"), task("bad", order{Do: "peer"}, order{}), task("limit", order{Stop: "max_turns"})}
	set := startServer(t, 1, 1)
	s := spec(first, spool(t, first, list...), set)
	s.Rollouts = 2
	must(t, s)

	second, w := reopen(t, first), newWatcher()
	list = append(list, task("new"))
	s = spec(second, spool(t, second, list...), set)
	s.Rollouts, s.Observer = 3, w
	s.Owed = func(st journal.State) bool { return st.Outcome == failure.Errored }
	must(t, s)
	if len(w.dispatched) != 2 || w.dispatched["bad#0"] != 1 || w.dispatched["bad#1"] != 1 {
		t.Errorf("retry: got %v, want both of bad", w.dispatched)
	}

	third, w := reopen(t, second), newWatcher()
	s = spec(third, spool(t, third, list...), set)
	s.Rollouts, s.Observer = 3, w
	must(t, s)
	want := []string{"good#2", "bad#2", "limit#2", "new#0", "new#1", "new#2"}
	for _, key := range want {
		if w.dispatched[key] != 1 {
			t.Errorf("resume: %s dispatched %d times, want once", key, w.dispatched[key])
		}
	}
	if len(w.dispatched) != len(want) {
		t.Errorf("resume: got %v, want %v", w.dispatched, want)
	}
	if n := third.Counts(3); n.Completed+n.Limit != 11 || n.Errors != 1 {
		t.Errorf("got %+v", n)
	}
}

// ender ends the server between a rollout's dispatch and its sending.
type ender struct {
	*watcher
	stop func()
}

func (e ender) Dispatched(key string, index int) {
	e.watcher.Dispatched(key, index)
	e.stop()
}

// A rollout that was dispatched and never sent, since the server was ending, was never run: it is no
// error of the server's.
func TestExit_BetweenDispatchAndSending(t *testing.T) {
	r, w := newRun(t), newWatcher()
	set := startServer(t, 1, 1)
	now, cancel := context.WithCancel(context.Background())
	cancel()
	s := spec(r, spool(t, r, task("a"), task("b")), set)
	s.Observer, s.MaxConcurrent, s.Retries = ender{w, func() { _ = set.Stop(now) }}, 1, 2
	if got := run(t, s); got.err != nil || !errors.Is(got.Stopped, errServerDown) {
		t.Fatalf("got %+v", got)
	}
	if n := r.Counts(1); n.NeverRun != 2 || n.Errors != 0 || len(records(t, r, "finish")) != 0 {
		t.Errorf("got %+v, want nothing run", n)
	}
	if got := w.ended["a#0"]; len(got) != 1 || got[0] != failure.Dropped {
		t.Errorf("got told of %v, want one end", got)
	}
}
