package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
)

func noCtx() context.Context { return context.Background() }

var errKilled = errors.New("killed")

// faultDisk dies at its at-th write boundary: before a write, in the middle of it, before or after a
// sync, before, in, or after a Cut or Replace. Nothing happens after that.
type faultDisk struct {
	osDisk
	mu     *sync.Mutex
	step   *int
	at     int
	synced map[string]int64 // what a power cut would leave of appended files
}

func faulty(at int) (func(*os.Root) disk, *faultDisk) {
	d := &faultDisk{mu: new(sync.Mutex), step: new(int), at: at, synced: map[string]int64{}}
	return func(r *os.Root) disk { d.osDisk = osDisk{r}; return d }, d
}

// alive takes a step and reports whether the disk has survived it.
func (d *faultDisk) alive() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.step++
	return *d.step < d.at
}

func (d *faultDisk) dead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *d.step >= d.at
}

func (d *faultDisk) Append(name string) (appender, error) {
	if d.dead() {
		return nil, errKilled
	}
	f, err := d.osDisk.Append(name)
	if err != nil {
		return nil, err
	}
	size, err := fileSize(d.root, name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.synced[name]; !known {
		d.synced[name] = size
	}
	return &faultFile{d, name, f}, nil
}

func (d *faultDisk) Cut(name string, at int64, to string) error {
	if !d.alive() {
		return errKilled
	}
	whole, err := d.root.ReadFile(name)
	if err != nil {
		return err
	}
	if !d.alive() { // copied, not cut
		return errors.Join(errKilled, d.root.WriteFile(to, whole[at:], 0o644))
	}
	return errors.Join(d.root.WriteFile(to, whole[at:], 0o644), os.Truncate(filepath.Join(d.root.Name(), name), at))
}

func (d *faultDisk) Replace(name string, write func(io.Writer) error) error {
	if !d.alive() {
		return errKilled
	}
	var b bytes.Buffer // as osDisk does, less its wait for the disk
	if err := write(&b); err != nil {
		return err
	}
	if err := errors.Join(d.root.WriteFile(".new", b.Bytes(), 0o644), d.root.Rename(".new", name)); err != nil {
		return err
	}
	if !d.alive() {
		return errKilled
	}
	return nil
}

type faultFile struct {
	d    *faultDisk
	name string
	appender
}

func (f *faultFile) Write(b []byte) (int, error) {
	if f.d.dead() {
		return 0, errKilled
	}
	if !f.d.alive() {
		return 0, errKilled
	}
	if !f.d.alive() {
		n, _ := f.appender.Write(b[:len(b)/2])
		return n, errKilled
	}
	return f.appender.Write(b)
}

// Sync remembers the size instead of waiting for the disk.
func (f *faultFile) Sync() error {
	if f.d.dead() || !f.d.alive() {
		return errKilled
	}
	size, err := fileSize(f.d.root, f.name)
	if err != nil {
		return err
	}
	f.d.mu.Lock()
	f.d.synced[f.name] = size
	f.d.mu.Unlock()
	if !f.d.alive() {
		return errKilled
	}
	return nil
}

// powerCut drops part of what was written and not synced: all, none, or half.
func (d *faultDisk) powerCut(t testing.TB, dir string, keep float64) {
	t.Helper()
	for name, synced := range d.synced {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, synced+int64(keep*float64(max(0, info.Size()-synced)))); err != nil {
			t.Fatal(err)
		}
	}
}

// ledger is what a caller was told.
type ledger struct {
	mu    sync.Mutex
	acked map[string]string // key/index/try → episode
}

func (l *ledger) ack(key string, index, try int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[fmt.Sprintf("%s/%d/%d", key, index, try)] = string(episode(key, index, try))
}

const scriptTasks, scriptRollouts = 3, 2

// script is a small run with everything in it. It goes on from whatever the run has, until the disk dies.
func script(r *Run, l *ledger) error {
	tasks, err := r.SpoolTasks(testTasks(scriptTasks))
	if err != nil {
		return err
	}
	for i := range tasks.Len() {
		for index := range scriptRollouts {
			if err := scriptRollout(r, l, tasks.Key(i), i, index); err != nil {
				return err
			}
		}
	}
	if err := r.Server(ServerEvent{Event: ServerExited, Instance: 1, Generation: 1, Code: new(0)}); err != nil {
		return err
	}
	if err := r.WriteSummary(Summary{Counts: r.Counts(scriptRollouts)}); err != nil {
		return err
	}
	return r.Close(CloseEvent{At: epoch()})
}

func scriptRollout(r *Run, l *ledger, key string, i, index int) error {
	outcomes := []failure.Outcome{failure.Completed}
	if i == 1 {
		outcomes = []failure.Outcome{failure.Errored, failure.Limit}
	}
	for _, o := range outcomes {
		if r.State(i, index).Outcome.Finished() {
			break
		}
		try, err := try1(r, key, index, o)
		if err != nil {
			return err
		}
		l.ack(key, index, try)
	}
	if !r.Scored(i, index, "p", "s") {
		if err := r.Score(ScoreLine{Key: key, Index: &index, Plugin: "p", Scorer: "s", Scores: []Score{{Value: new(1.0)}}}); err != nil {
			return err
		}
	}
	if i == 2 {
		return r.Partial(Partial{Key: key, Index: index, Try: 1, Reason: "exited"})
	}
	return nil
}

// verify holds a run against what was acknowledged: nothing lost, nothing twice, files agree.
func verify(t testing.TB, v *View, l *ledger) {
	t.Helper()
	seen := map[string]string{}
	finished := map[string]bool{}
	for f, err := range v.Finishes() {
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("%s/%d/%d", f.Key, f.Index, f.Try)
		if _, twice := seen[id]; twice {
			t.Fatalf("%s finished twice", id)
		}
		raw, err := v.Episode(f.Episode)
		if err != nil {
			t.Fatal(err)
		}
		seen[id] = string(raw)
		if rollout := fmt.Sprintf("%s/%d", f.Key, f.Index); f.Outcome.Finished() {
			if finished[rollout] {
				t.Fatalf("%s is finished twice", rollout)
			}
			finished[rollout] = true
			task, _ := v.Tasks().Ordinal(f.Key)
			if s := v.State(task, f.Index); s.Outcome != f.Outcome || s.Episode != f.Episode {
				t.Fatalf("%s: state %+v, want %+v", rollout, s, f)
			}
		}
	}
	for id, want := range l.acked {
		if seen[id] != want {
			t.Fatalf("acknowledged %s: got %q, want %q", id, seen[id], want)
		}
	}
	if got := len(lines(t, v, TracesFile)); len(finished) > 0 && got != len(finished) {
		t.Fatalf("traces.jsonl has %d lines, want %d", got, len(finished))
	}
	c := v.Counts(scriptRollouts)
	if c.Completed+c.Limit != len(finished) || c.Planned != c.Completed+c.Limit+c.Owed {
		t.Fatalf("counts %+v with %d finished", c, len(finished))
	}
}

// TestRun_KilledAtEveryWrite is invariants 5 and 6: whatever moment wevalr or the machine dies at, and
// dies again at while recovering, nothing finished is lost and nothing is done twice.
func TestRun_KilledAtEveryWrite(t *testing.T) {
	on, d := faulty(1 << 30)
	r, err := create(t.TempDir(), "demo", epoch(), testIdentity(), on)
	if err != nil {
		t.Fatal(err)
	}
	if err := script(r, &ledger{acked: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	total := *d.step
	t.Logf("%d boundaries", total)
	stride := 1
	if testing.Short() {
		stride = 7
	}
	runs, deaths := 0, 0
	for at := 1; at <= total; at += stride {
		for _, keep := range []float64{0, 0.5, 1} {
			runs++
			if killAndResume(t, at, 1+at%23, keep) {
				deaths++
			}
		}
	}
	if deaths < runs*9/10 { // how lines share a write varies, and with it the last boundaries
		t.Errorf("only %d of %d runs were killed", deaths, runs)
	}
}

// killAndResume runs the script to its death at a boundary, then resumes it: once to a death at
// another boundary, then to the end.
func killAndResume(t *testing.T, first, second int, keep float64) (killed bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("killed at %d, then at %d, keeping %v", first, second, keep)
		}
	}()
	root, l := t.TempDir(), &ledger{acked: map[string]string{}}
	on, d := faulty(first)
	r, err := create(root, "demo", epoch(), testIdentity(), on)
	if err == nil {
		err = script(r, l)
		_ = r.Close(CloseEvent{})
	}
	killed = err != nil
	dirs, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		if len(l.acked) > 0 {
			t.Fatal("a run with finished rollouts is gone")
		}
		return killed
	}
	d.powerCut(t, dirs[0], keep)
	on, d = faulty(second)
	if r, err := open(dirs[0], on); err == nil {
		verify(t, r.View, l)
		if err := script(r, l); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		_ = r.Close(CloseEvent{})
	} else if !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	d.powerCut(t, dirs[0], keep)
	finishScript(t, dirs[0], l)
	return killed
}

// finishScript resumes on a sound disk and checks the end.
func finishScript(t *testing.T, dir string, l *ledger) {
	t.Helper()
	on, _ := faulty(1 << 30)
	r, err := open(dir, on)
	if err != nil {
		t.Fatal(err)
	}
	if err := script(r, l); err != nil {
		t.Fatal(err)
	}
	v, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	verify(t, v, l)
	want := Counts{Planned: 6, Completed: 4, Limit: 2}
	got := v.Counts(scriptRollouts)
	got.Retried = 0 // as many as died
	if got != want {
		t.Fatalf("counts: got %+v, want %+v", got, want)
	}
	if got := len(lines(t, v, ScoresFile)); got != 6 {
		t.Fatalf("scores.jsonl has %d lines, want 6", got)
	}
	for i := range scriptTasks {
		for index := range scriptRollouts {
			if !v.Scored(i, index, "p", "s") {
				t.Fatalf("rollout %d of task %d is not scored", index, i)
			}
		}
	}
	if _, err := v.Summary(); err != nil {
		t.Fatal(err)
	}
}

// TestRun_KilledWithManyCallers is the same with batches: callers run until the disk dies under them.
func TestRun_KilledWithManyCallers(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		rng := rand.New(rand.NewPCG(uint64(round), 1))
		root, l := t.TempDir(), &ledger{acked: map[string]string{}}
		on, d := faulty(30 + rng.IntN(200))
		r, err := create(root, "demo", epoch(), testIdentity(), on)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.SpoolTasks(testTasks(40)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				for index := range scriptRollouts {
					key := fmt.Sprintf("t/%d", i)
					if try, err := try1(r, key, index, failure.Completed); err == nil {
						l.ack(key, index, try)
					} else if !errors.Is(err, errKilled) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		_ = r.Close(CloseEvent{})
		d.powerCut(t, r.Dir(), rng.Float64())
		again, err := Open(r.Dir())
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		verify(t, again.View, l)
		mustClose(t, again)
	}
}
