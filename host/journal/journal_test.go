package journal

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/stats"
)

func TestCreate_Layout(t *testing.T) {
	r := newRun(t, 2)
	if !strings.HasPrefix(r.ID(), "20261129-101530-") || len(r.ID()) != 20 || !validName.MatchString(r.ID()) {
		t.Errorf("id: got %q", r.ID())
	}
	run1(t, r, "t/0", 0, failure.Completed)
	run1(t, r, "t/1", 0, failure.Errored)
	mustClose(t, r)
	for _, name := range []string{RunFile, ConfigFile, TasksFile, JournalFile, TracesFile, ErroredFile, ScoresFile, lockFile, "logs/attempt_1"} {
		if _, err := os.Stat(filepath.Join(r.Dir(), name)); err != nil {
			t.Error(err)
		}
	}
	if to, err := os.Readlink(filepath.Join(r.Dir(), "logs/latest")); err != nil || to != "attempt_1" {
		t.Errorf("logs/latest: got %q, %v", to, err)
	}
	if got, want := lines(t, r, TracesFile), []string{string(episode("t/0", 0, 1))}; !slices.Equal(got, want) {
		t.Errorf("traces.jsonl: got %q, want %q", got, want)
	}
	if got, want := lines(t, r, ErroredFile), []string{string(episode("t/1", 0, 1))}; !slices.Equal(got, want) {
		t.Errorf("errored.jsonl: got %q, want %q", got, want)
	}
	var kinds []string
	for _, l := range lines(t, r, JournalFile) {
		var h head
		if err := json.Unmarshal([]byte(l), &h); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, h.T)
	}
	if got, want := strings.Join(kinds, " "), "open dispatch finish dispatch finish close"; got != want {
		t.Errorf("journal: got %q, want %q", got, want)
	}
	id, err := ReadIdentity(r.Dir())
	if err != nil || id.Model != "offline/demo" || string(id.TOML) != "version = 1\n" || id.ID != r.ID() {
		t.Errorf("identity: got %+v, %v", id, err)
	}
}

func TestCreate_RefusesNames(t *testing.T) {
	for _, name := range []string{"", "..", "A", "a/b", "-a", strings.Repeat("a", 64)} {
		if _, err := Create(t.TempDir(), name, epoch(), testIdentity()); err == nil {
			t.Errorf("%q: no error", name)
		}
	}
}

func TestOpen_SecondWriter(t *testing.T) {
	r := newRun(t, 1)
	var locked *LockedError
	if _, err := Open(r.Dir()); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("got %v, want *LockedError with pid %d", err, os.Getpid())
	}
	if v, err := Read(r.Dir()); err != nil {
		t.Errorf("a reader needs no lock: %v", err)
	} else {
		v.Close()
	}
}

func TestOpen_NextAttempt(t *testing.T) {
	r := newRun(t, 2)
	run1(t, r, "t/0", 0, failure.Completed)
	if err := r.Dispatch("t/1", 0, 1, epoch()); err != nil { // dies in flight
		t.Fatal(err)
	}
	if err := r.WriteSummary(Summary{}); err != nil {
		t.Fatal(err)
	}
	r = reopen(t, r)
	if r.Attempt() != 2 || filepath.Base(r.LogDir()) != "attempt_2" || len(r.Recovered()) != 0 {
		t.Errorf("got attempt %d, logs %s, recovered %v", r.Attempt(), r.LogDir(), r.Recovered())
	}
	if _, err := r.Summary(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("summary.json of the last attempt: got %v, want none", err)
	}
	if s := r.State(1, 0); s.InFlight || s.Tries != 1 || s.Outcome != "" {
		t.Errorf("a try that never ended: got %+v", s)
	}
	var state *StateError
	f := Finish{Key: "t/1", Try: 1, Outcome: failure.Completed}
	if _, err := r.Finish(noCtx(), f, []byte("{}")); !errors.As(err, &state) {
		t.Errorf("finish of the last attempt's try: got %v, want *StateError", err)
	}
	run1(t, r, "t/1", 0, failure.Limit)
	if got, want := r.Counts(1), (Counts{Planned: 2, Completed: 1, Limit: 1, Retried: 1}); got != want {
		t.Errorf("counts: got %+v, want %+v", got, want)
	}
}

func TestRun_RefusesWhatDoesNotFit(t *testing.T) {
	r := newRun(t, 1)
	run1(t, r, "t/0", 0, failure.Completed)
	if err := r.Dispatch("t/0", 1, 1, epoch()); err != nil {
		t.Fatal(err)
	}
	finish := func(f Finish, ep string) error {
		_, err := r.Finish(noCtx(), f, []byte(ep))
		return err
	}
	ok := failure.Completed
	for name, err := range map[string]error{
		"dispatch of an unknown task":     r.Dispatch("nope", 0, 1, epoch()),
		"dispatch of a finished rollout":  r.Dispatch("t/0", 0, 2, epoch()),
		"dispatch while in flight":        r.Dispatch("t/0", 1, 2, epoch()),
		"dispatch out of turn":            r.Dispatch("t/0", 2, 2, epoch()),
		"negative index":                  r.Dispatch("t/0", -1, 1, epoch()),
		"unknown task":                    finish(Finish{Key: "nope", Try: 1, Outcome: ok}, "{}"),
		"unknown index":                   finish(Finish{Key: "t/0", Index: 9, Try: 1, Outcome: ok}, "{}"),
		"twice":                           finish(Finish{Key: "t/0", Try: 1, Outcome: ok}, "{}"),
		"a try that was not dispatched":   finish(Finish{Key: "t/0", Index: 1, Try: 2, Outcome: ok}, "{}"),
		"completed without an episode":    finish(Finish{Key: "t/0", Index: 1, Try: 1, Outcome: ok}, ""),
		"error without a failure":         finish(Finish{Key: "t/0", Index: 1, Try: 1, Outcome: failure.Errored}, ""),
		"an outcome that there is not":    finish(Finish{Key: "t/0", Index: 1, Try: 1, Outcome: "ok"}, "{}"),
		"an episode of two lines":         finish(Finish{Key: "t/0", Index: 1, Try: 1, Outcome: ok}, "{\n}"),
		"a score of an unfinished one":    r.Score(ScoreLine{Key: "t/0", Index: new(1)}),
		"a score of an unknown task":      r.Score(ScoreLine{Key: "nope"}),
		"a raw reply for an unknown task": func() error { _, err := r.Raw("nope", 0, 1, nil); return err }(),
	} {
		if _, ok := errors.AsType[*StateError](err); !ok {
			t.Errorf("%s: got %v, want *StateError", name, err)
		}
	}
	if err := r.Score(ScoreLine{Key: "t/0", Index: new(0), Scores: []Score{{Value: new(math.NaN())}}}); err == nil {
		t.Error("NaN was taken as a score")
	}
	if got := lines(t, r, TracesFile); len(got) != 1 {
		t.Errorf("traces.jsonl has %d lines, want 1", len(got))
	}
}

// Of many that finish the same try at the same time, one wins.
func TestRun_Finish_Race(t *testing.T) {
	r := newRun(t, 1)
	if err := r.Dispatch("t/0", 0, 1, epoch()); err != nil {
		t.Fatal(err)
	}
	won := make(chan error, 32)
	var wg sync.WaitGroup
	for range cap(won) {
		wg.Go(func() {
			_, err := r.Finish(noCtx(), Finish{Key: "t/0", Try: 1, Outcome: failure.Completed}, []byte("{}"))
			won <- err
		})
	}
	wg.Wait()
	close(won)
	n := 0
	for err := range won {
		if err == nil {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d callers won, want 1", n)
	}
}

func TestRun_Finish_EndedContext(t *testing.T) {
	r := newRun(t, 1)
	if err := r.Dispatch("t/0", 0, 1, epoch()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Finish(ctx, Finish{Key: "t/0", Try: 1, Outcome: failure.Completed}, []byte("{}")); err != nil {
		t.Errorf("a reply that arrived lost against a cancel: %v", err)
	}
}

func TestRun_Closed(t *testing.T) {
	r := newRun(t, 1)
	mustClose(t, r)
	for name, err := range map[string]error{
		"dispatch": r.Dispatch("t/0", 0, 1, epoch()), "server": r.Server(ServerEvent{}),
		"summary": r.WriteSummary(Summary{}), "close": r.Close(CloseEvent{}), "partial": r.Partial(Partial{}),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
}

// fullDisk refuses all writes once full is set, like a disk without space.
type fullDisk struct {
	osDisk
	full *bool
}

type fullFile struct {
	appender
	full *bool
}

func (d fullDisk) Append(name string) (appender, error) {
	f, err := d.osDisk.Append(name)
	return fullFile{f, d.full}, err
}

func (f fullFile) Write(b []byte) (int, error) {
	if *f.full {
		return 0, syscall.ENOSPC
	}
	return f.appender.Write(b)
}

func TestRun_DiskFull(t *testing.T) {
	full := new(bool)
	r, err := create(t.TempDir(), "demo", epoch(), testIdentity(), func(root *os.Root) disk { return fullDisk{osDisk{root}, full} })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.SpoolTasks(testTasks(2)); err != nil {
		t.Fatal(err)
	}
	run1(t, r, "t/0", 0, failure.Completed)
	*full = true
	_, err = try1(r, "t/1", 0, failure.Completed)
	var disk *DiskError
	if !errors.As(err, &disk) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want *DiskError with ENOSPC", err)
	}
	if f := failure.Of(err); f.Source != failure.Host || f.Kind != "disk" {
		t.Errorf("failure: got %v, want host/disk", f)
	}
	*full = false // sealed all the same
	if err := r.Server(ServerEvent{}); !errors.As(err, &disk) || r.Err() == nil {
		t.Errorf("after the first error: got %v, want *DiskError", err)
	}
	if raw, err := r.Episode(r.State(0, 0).Episode); err != nil || len(raw) == 0 {
		t.Errorf("what was committed: %v", err)
	}
	if c := r.Counts(1); c.Completed != 1 || c.Owed != 1 {
		t.Errorf("counts: got %+v", c)
	}
	if err := r.Close(CloseEvent{}); !errors.As(err, &disk) {
		t.Errorf("close: got %v, want *DiskError", err)
	}
	again, err := Open(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	run1(t, again, "t/1", 0, failure.Completed)
	mustClose(t, again)
}

func TestView_Failures(t *testing.T) {
	r := newRun(t, 3)
	run1(t, r, "t/0", 0, failure.Errored)
	run1(t, r, "t/1", 0, failure.Errored)
	run1(t, r, "t/2", 0, failure.Errored)
	run1(t, r, "t/2", 0, failure.Completed)
	want := []FailureCount{{failure.Model, "unavailable", 2, "503 from the model"}}
	for _, v := range []*Run{r, reopen(t, r)} {
		if got := v.Failures(1); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if u := v.Usage(); u.InputTokens != 40 || u.OutputTokens != 4 || u.Cost != nil {
			t.Errorf("usage of all tries: got %+v", u)
		}
	}
}

func TestRun_WriteSummary_Names(t *testing.T) {
	r := newRun(t, 1)
	acc := stats.New(stats.Options{Binary: true})
	for i := range 3 {
		if err := acc.Add(i, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Server(ServerEvent{At: epoch(), Event: ServerExited, Instance: 1, Generation: 2, Signal: new(9), UptimeS: 1.5}); err != nil {
		t.Fatal(err)
	}
	s := Summary{Scores: map[string]stats.Estimate{"p.s": acc.Estimate(3, 1)}, Server: SummaryServer{r.Generations()}}
	if err := r.WriteSummary(s); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	raw, err := os.ReadFile(filepath.Join(r.Dir(), SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	has := func(m any, names ...string) {
		t.Helper()
		for _, n := range names {
			if _, ok := m.(map[string]any)[n]; !ok {
				t.Errorf("summary.json: no %q in %v", n, m)
			}
		}
	}
	has(got, "format", "run", "planned", "completed", "limit", "errors", "cancelled", "never_run", "owed", "retried",
		"failures", "scores", "rewards", "usage", "server", "plugins", "duration_s", "exit_code")
	has(got["run"], "id", "name", "dir", "attempts")
	has(got["usage"], "input_tokens", "output_tokens", "cost")
	has(got["scores"].(map[string]any)["p.s"], "mean", "se", "ci", "ci_method", "tasks", "rollouts", "scored", "null", "coverage", "bounds", "pass_at")
	has(got["server"].(map[string]any)["generations"].([]any)[0], "attempt", "instance", "generation", "code", "signal", "uptime_s")
	if got["format"] != "wevalr.summary/1" {
		t.Errorf("format: got %v", got["format"])
	}
}

func TestRun_PartialAndRaw(t *testing.T) {
	r := newRun(t, 1)
	big := json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`)
	if err := r.Partial(Partial{Key: "t/0", Try: 1, Reason: "exited", Traces: []json.RawMessage{big, big}}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for p, err := range r.Partials() {
		if n++; err != nil || len(p.Traces) != 1 || !p.Truncated {
			t.Errorf("got %d traces, truncated %v, %v", len(p.Traces), p.Truncated, err)
		}
	}
	if n != 1 {
		t.Errorf("got %d partial lines, want 1", n)
	}
	name, err := r.Raw("t/0", 0, 1, make([]byte, maxKept+5))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(r.Dir(), name)); err != nil || info.Size() != maxKept {
		t.Errorf("%s: got %v, %v", name, info, err)
	}
}

func TestIdentity_Diff(t *testing.T) {
	was, now := testIdentity(), testIdentity()
	now.Version = "0.2.0"
	if d, err := was.Diff(now); err != nil || len(d) != 0 {
		t.Fatalf("another version of wevalr: got %v, %v", d, err)
	}
	now.Model = "other"
	now.Config["sampling"] = map[string]any{"temperature": 0.5}
	now.Plugins = []PluginIdentity{{Alias: "arith", Plugin: "arith", SHA256: "cd"}}
	got, err := was.Diff(now)
	want := []Difference{
		{"config.sampling.temperature", "", "0.5"},
		{"model", `"offline/demo"`, `"other"`},
		{"plugins.arith.sha256", `"ab"`, `"cd"`},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	for _, id := range []string{"20260101-000000-aaaa", "20260101-000000-aabb", "20260202-000000-aaaa"} {
		dir := filepath.Join(root, "demo", id)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, RunFile), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	full := filepath.Join(root, "demo", "20260202-000000-aaaa")
	for _, ref := range []string{"20260202-000000-aaaa", "202602", full} {
		if got, err := Find(root, ref); err != nil || got != full {
			t.Errorf("%q: got %q, %v", ref, got, err)
		}
	}
	var many *AmbiguousError
	if _, err := Find(root, "20260101"); !errors.As(err, &many) || len(many.Dirs) != 2 {
		t.Errorf("got %v, want *AmbiguousError of 2", err)
	}
	var none *NotFoundError
	for _, ref := range []string{"", "2027", "demo", "../x"} {
		if _, err := Find(root, ref); !errors.As(err, &none) {
			t.Errorf("%q: got %v, want *NotFoundError", ref, err)
		}
	}
	if _, err := Find(filepath.Join(root, "absent"), "x"); !errors.As(err, &none) {
		t.Errorf("no root: got %v, want *NotFoundError", err)
	}
}

func TestErrors_ZeroValues(t *testing.T) {
	for _, err := range []error{
		&DiskError{}, &CorruptError{}, &LockedError{}, &StateError{}, &TaskSetError{}, &NotFoundError{}, &AmbiguousError{},
	} {
		if err.Error() == "" {
			t.Errorf("%T says nothing", err)
		}
	}
}

func TestCell_Size(t *testing.T) {
	if n := unsafe.Sizeof(cell{}); n > 32 {
		t.Errorf("a cell has %d bytes, want at most 32", n)
	}
}
