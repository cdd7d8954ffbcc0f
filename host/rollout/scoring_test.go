package rollout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/plugins/abi"
)

const conform = "testplugins/conform-go"

// A failure is never a score: what a scorer may do wrong is recorded as its failure, there is no
// number, and the episodes are untouched.
func TestScoring_FailureIsNeverAScore(t *testing.T) {
	p := load(t, conform, plugin.Grants{}, nil)
	want := map[string]string{
		"panic": "trap", "error": "own_code", "plain error": "error", "nan": "response", "inf": "response",
		"range": "response", "none": "response", "twice": "response", "env": "denied", "huge": "response", "fine": "",
	}
	r, w := newRun(t), newWatcher()
	var list []abi.Task
	for i, say := range slices.Sorted(maps.Keys(want)) {
		list = append(list, task(fmt.Sprint("t", i), order{Say: say}))
	}
	list = append(list, task("errored", order{Do: "peer"}), task("limit", order{Say: "fine", Stop: "max_turns"}))
	s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
	s.Scorers, s.Observer = scorersOf(t, p, "misbehave"), w
	must(t, s)
	said := map[string]string{"limit": "fine"}
	for i, say := range slices.Sorted(maps.Keys(want)) {
		said[fmt.Sprint("t", i)] = say
	}
	all := scoreLines(t, r)
	if len(all) != len(want)+1 {
		t.Errorf("got %d lines, want %d: none of the rollout in error", len(all), len(want)+1)
	}
	for _, l := range all {
		kind := want[said[l.Key]]
		if kind == "" {
			if l.Failure != nil || len(l.Scores) != 1 || *l.Scores[0].Value != 1 {
				t.Errorf("%s: got %+v, want 1", said[l.Key], l)
			}
			continue
		}
		if l.Failure == nil || l.Failure.Source != failure.Plugin || l.Failure.Kind != kind || len(l.Scores) != 0 {
			t.Errorf("%s: got %+v, want plugin/%s and no score", said[l.Key], l, kind)
		}
	}
	if got := w.values["conform-go.misbehave"]; len(got) != 2 {
		t.Errorf("got told of %d values, want 2", len(got))
	}
	if n := r.Counts(1); n.Completed != len(want) || n.Limit != 1 || n.Errors != 1 {
		t.Errorf("got %+v", n)
	}
}

// What earlier attempts left unscored is scored by the next, once; a failing scorer is tried once an
// attempt; what has its score is left alone.
func TestScoring_OwedByEarlierAttempts(t *testing.T) {
	p := load(t, conform, withEnv(), nil)
	first := newRun(t)
	const n = waiting + 200 // more than the queue holds
	var list []abi.Task
	for i := range n {
		list = append(list, abi.Task{Key: fmt.Sprint("t", i), Data: map[string]any{"prompt": "p"}})
	}
	s := spec(first, spool(t, first, list...), startServer(t, 1, 1))
	must(t, s)

	second := reopen(t, first)
	s = spec(second, spool(t, second, list...), noServers{})
	s.Scorers = scorersOf(t, p, "length", "misbehave", "calls")
	must(t, s)
	count := map[string]int{}
	for _, l := range scoreLines(t, second) {
		count[l.Scorer]++
		if l.Scorer == "calls" && (l.Failure == nil || l.Failure.Kind != "response") {
			t.Fatalf("got %+v, want a failure: no plugin drove the rollout", l)
		}
	}
	if count["length"] != n || count["misbehave"] != n || count["calls"] != n {
		t.Errorf("got %v, want %d each", count, n)
	}

	third, w := reopen(t, second), newWatcher()
	s = spec(third, spool(t, third, list...), noServers{})
	s.Scorers, s.Observer = scorersOf(t, p, "length", "misbehave"), w
	must(t, s)
	if len(w.values) != 0 {
		t.Errorf("got %d scorers again", len(w.values))
	}
}

// A driver's scores are as durable as its episode: an attempt that dies before it wrote them owes
// them, and the next one finds them.
func TestScoring_DriverScoresSurvive(t *testing.T) {
	p := load(t, bestOfN, withEnv("temperature"), nil)
	first := newRun(t)
	list := []abi.Task{task("a", order{Say: "x"})}
	s := spec(first, spool(t, first, list...), startServer(t, 1, 1))
	s.Driver = p
	must(t, s) // nobody asks for the score

	second := reopen(t, first)
	s = spec(second, spool(t, second, list...), noServers{})
	s.Driver, s.Scorers = p, scorersOf(t, p, "candidates")
	must(t, s)
	if l := scoreLines(t, second); len(l) != 1 || l[0].Failure != nil || *l[0].Scores[0].Value != 4 {
		t.Errorf("got %+v, want 4", l)
	}
}

// A group is scored when it is whole, once, and again when it has grown.
func TestScoring_Groups(t *testing.T) {
	p := load(t, conform, plugin.Grants{}, nil)
	first := newRun(t)
	list := []abi.Task{task("whole", order{Say: "abc"}), task("hole", order{Do: "peer", Once: filepath.Join(t.TempDir(), "once")})}
	s := spec(first, spool(t, first, list...), startServer(t, 1, 1))
	s.Rollouts, s.Scorers = 2, scorersOf(t, p, "spread")
	must(t, s)
	l := scoreLines(t, first)
	if len(l) != 1 || l[0].Key != "whole" || l[0].Index != nil || l[0].Rollouts != 2 || *l[0].Scores[0].Value != 0 {
		t.Fatalf("got %+v, want the whole group's spread of 0", l)
	}
	for _, rollouts := range []int{2, 3} {
		first = reopen(t, first)
		s = spec(first, spool(t, first, list...), startServer(t, 1, 1))
		s.Rollouts, s.Scorers = rollouts, scorersOf(t, p, "spread")
		must(t, s)
	}
	seen := map[string]int{}
	for _, l := range scoreLines(t, first) {
		seen[l.Key] = l.Rollouts
	}
	if !maps.Equal(seen, map[string]int{"whole": 3, "hole": 3}) {
		t.Errorf("got groups of %v, want 3 each", seen)
	}
}

// hide masks the word that stands for a secret.
func hide(b []byte) []byte {
	return bytes.ReplaceAll(b, []byte("secret-value"), []byte("[SECRET]"))
}

func hideRaw(b []byte) []byte {
	return bytes.ReplaceAll(b, []byte("secret-value"), []byte("************"))
}

// A secret reaches neither disk nor scorer nor the plugin that drives.
func TestMask_BeforeDiskScorerAndGuest(t *testing.T) {
	p := load(t, conform, withEnv("temperature"), nil)
	for name, driver := range map[string]*plugin.Plugin{"host": nil, "plugin": p} {
		t.Run(name, func(t *testing.T) {
			r, w := newRun(t), newWatcher()
			said := order{Say: "the key is secret-value"}
			a := task("a", said)
			a.Data["drive"], a.Data["prompt"] = "chain", "secret-value"
			list := []abi.Task{a, task("err", order{Error: "ProviderError", Status: 401}), task("raw", order{Do: "garbage"})}
			if driver != nil {
				list = list[:1]
			}
			s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
			s.Scorers, s.Observer = scorersOf(t, p, "length"), w
			s.Mask, s.MaskRaw, s.Driver = hide, hideRaw, driver
			must(t, s)
			l := scoreLines(t, r)
			if len(l) != 1 || l[0].Failure != nil {
				t.Fatalf("got %+v", l)
			}
			if driver == nil && l[0].Scores[0].Answer != "the key is [SECRET]" {
				t.Errorf("the scorer saw %q", l[0].Scores[0].Answer)
			}
			if driver != nil { // which sends the first answer as its second prompt
				_, said, _ := strings.Cut(l[0].Scores[0].Answer, "prompt of ")
				size, prompt, _ := strings.Cut(said, " bytes: ")
				if size != strconv.Itoa(len(prompt)) || !strings.Contains(prompt, "[SECRET]") {
					t.Errorf("the guest sent on %s bytes that we see as %q", size, prompt)
				}
			}
			err := filepath.WalkDir(r.Dir(), func(path string, d os.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() || filepath.Base(path) == journal.TasksFile {
					return err
				}
				raw, err := os.ReadFile(path)
				if bytes.Contains(raw, []byte("secret-value")) {
					t.Errorf("%s holds the secret", filepath.Base(path))
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			f := byKey(t, r)["err"].Failure
			if driver == nil && (f == nil || !strings.Contains(f.Message, "[SECRET]")) {
				t.Errorf("got %v", f)
			}
		})
	}
}

// Without a way to mask it, an undecodable reply is not kept.
func TestMask_RawOnlyMasked(t *testing.T) {
	r := newRun(t)
	s := spec(r, spool(t, r, task("raw", order{Do: "garbage"})), startServer(t, 1, 1))
	s.Mask = hide
	must(t, s)
	if _, err := os.Stat(filepath.Join(r.Dir(), journal.RawDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no raw replies", err)
	}
}

// A dead server's rollout gets its next try in a new generation where that is asked for, and no
// retry is charged.
func TestReplays_NotChargedToRetries(t *testing.T) {
	r := newRun(t)
	set := startServer(t, 1, 1)
	next := startServer(t, 1, 2)
	list := []abi.Task{task("a", order{Do: "die", Once: filepath.Join(t.TempDir(), "died")})}
	s := spec(r, spool(t, r, list...), &twoSets{first: set, second: next})
	s.Replays = 2
	must(t, s)
	f := records(t, r, "finish")
	if len(f) != 2 || f[0].Outcome != failure.Errored || f[0].Failure.Kind != "exited" || f[1].Try != 2 || f[1].Outcome != failure.Completed {
		t.Errorf("got %+v, want an exit and then its replay", f)
	}
}

// twoSets starts again as server.Set does, at once: the second stands by. With waits there is none.
type twoSets struct {
	first, second *server.Set
	waits         bool
	bound         func()
}

func (s *twoSets) Down() <-chan struct{} { return nil }

func (s *twoSets) Bind(ctx context.Context) (*server.Server, func(), error) {
	if s.waits {
		s.bound()
		<-ctx.Done()
		return nil, nil, context.Cause(ctx)
	}
	set := s.first
	select {
	case <-s.first.Servers()[0].Closing():
		set = s.second
	default:
	}
	return set.Bind(ctx)
}

// A rollout that waits for a new generation does not outlive admission.
func TestBind_EndsWithAdmission(t *testing.T) {
	r := newRun(t)
	drain := make(chan struct{})
	s := spec(r, spool(t, r, task("a")), &twoSets{waits: true, bound: func() { close(drain) }})
	s.Drain = drain
	got := run(t, s)
	if got.err != nil || !errors.Is(got.Stopped, ErrDrained) || len(records(t, r, "dispatch")) != 0 {
		t.Errorf("got %+v, want a drain and nothing dispatched", got)
	}
}

// What waits for a scorer is bounded in bytes and in number, and a put never waits.
func TestScoring_PutIsBounded(t *testing.T) {
	s := &scoring{engine: &engine{}, single: make([]Scorer, 1), queue: make(chan item, 3)}
	line := make([]byte, retained*2/3)
	for range 5 {
		s.put(item{task: &abi.Task{}, line: line, size: len(line)})
	}
	if got := s.held.Load(); got != int64(len(line)) {
		t.Errorf("got %d bytes held, want one line's", got)
	}
	for i := range 3 {
		it := <-s.queue
		if (it.line != nil) != (i == 0) || (it.task != nil) != (i == 0) {
			t.Errorf("item %d: got a line of %d", i, len(it.line))
		}
		s.drop(&it)
	}
	if got := s.held.Load(); got != 0 {
		t.Errorf("got %d bytes held at the end", got)
	}
}

// What found no place in the queue is scored by the sweep at the end.
func TestScoring_SweepFindsWhatWasDropped(t *testing.T) {
	p := load(t, conform, plugin.Grants{}, nil)
	r, ctx := newRun(t), context.Background()
	sp := spec(r, spool(t, r, task("a")), noServers{})
	sp.Scorers, sp.Observer = scorersOf(t, p, "length"), silent{}
	s := newScoring(&engine{Spec: sp})
	s.start(ctx)
	s.sweeps.Wait()
	if err := r.Dispatch("a", 0, 1, epoch()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(ctx, journal.Finish{Key: "a", Try: 1, Outcome: failure.Completed}, []byte(`{"ok":true,"traces":[]}`)); err != nil {
		t.Fatal(err)
	}
	s.finish(ctx)
	if l := scoreLines(t, r); len(l) != 1 || l[0].Failure != nil {
		t.Errorf("got %+v, want its score", l)
	}
}

// What is owed from before is scored while rollouts are in flight.
func TestScoring_DoesNotWaitForRollouts(t *testing.T) {
	p := load(t, conform, plugin.Grants{}, nil)
	first := newRun(t)
	set := startServer(t, 1, 1)
	must(t, spec(first, spool(t, first, task("a")), set))

	b, there := held(t, "b")
	second, w := reopen(t, first), newWatcher()
	s := spec(second, spool(t, second, task("a"), b), set)
	s.Scorers, s.Observer = scorersOf(t, p, "length"), w
	ctx, cancel := context.WithCancelCause(context.Background())
	done := start(ctx, s)
	hosttest.Until(t, "the score of a", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.values["conform-go.length"]) == 1 && there()
	})
	cancel(errStop)
	hosttest.Await(t, "the end of the attempt", done)
}

func TestScoring_ClaimsOnce(t *testing.T) {
	s := &scoring{engine: &engine{Spec: Spec{Rollouts: 2}}, tried: make([]bool, 4)}
	for _, it := range []item{{ordinal: 0, index: 1}, {ordinal: 1, index: 0}} {
		if !s.claim(it) || s.claim(it) {
			t.Errorf("%+v: want one claim", it)
		}
	}
}
