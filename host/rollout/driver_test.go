package rollout

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/zmqio"
)

const bestOfN = "testplugins/best-of-n"

// episodeOf reads the episode of a finish line.
func episodeOf(t *testing.T, run *journal.Run, r record) *wire.Episode {
	t.Helper()
	line, err := run.Episode(r.Episode)
	if err != nil {
		t.Fatal(err)
	}
	ep, err := wire.ParseEpisode(line)
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

// A plugin samples four candidates side by side; the first to finish is the last to be started, since
// each waits for those after it. All traces are kept, the longest is selected, the seeds differ, the
// sampling that was granted is sent, and the driver's score is the rollout's.
func TestDriver_BestOfFour(t *testing.T) {
	p := load(t, bestOfN, withEnv("temperature"), nil)
	r, w := newRun(t), newWatcher()
	list := []abi.Task{task("a",
		order{Seen: 4, Say: "long, longer, longest"}, order{Seen: 3, Say: "b"}, order{Seen: 2, Say: "cc"}, order{Say: "ddd"})}
	s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
	s.Driver, s.Scorers, s.Observer, s.Rollouts, s.MaxConcurrent = p, scorersOf(t, p, "candidates"), w, 1, 4
	must(t, s)
	finishes := records(t, r, "finish")
	if len(finishes) != 1 || finishes[0].Outcome != failure.Completed || finishes[0].Usage.OutputTokens != 8 {
		t.Fatalf("got %+v, want one completed rollout with the usage of four", finishes)
	}
	again := reopen(t, r)
	ep := episodeOf(t, again, finishes[0])
	if len(ep.Traces) != 4 || ep.Selected().Completion() != "long, longer, longest" {
		t.Errorf("got %d traces, selected %q", len(ep.Traces), ep.Selected().Completion())
	}
	sl := scoreLines(t, again)
	if len(sl) != 1 || len(sl[0].Scores) != 1 || *sl[0].Scores[0].Value != 4 || sl[0].Scorer != "candidates" {
		t.Errorf("got scores %+v, want candidates = 4", sl)
	}
	if got := w.values["best-of-n.candidates"]; len(got) != 1 {
		t.Errorf("got told of %v under %v", got, w.values)
	}
}

// Every call of a rollout has its own seed, and repeats it.
func TestDriver_SeedsAndSampling(t *testing.T) {
	p := load(t, bestOfN, withEnv("temperature"), map[string]any{"temperature": 0.25})
	said := func() []string {
		r := newRun(t)
		s := spec(r, spool(t, r, task("a", order{})), startServer(t, 1, 1))
		base := int64(7)
		s.Driver, s.Request.SamplingSeed, s.Request.Sampling = p, &base, map[string]any{"temperature": 1.0, "top_p": 0.5}
		must(t, s)
		ep := episodeOf(t, reopen(t, r), records(t, r, "finish")[0])
		var out []string
		for i := range ep.Traces {
			_, text, _ := strings.Cut(ep.Traces[i].Completion(), "seed ")
			out = append(out, text)
		}
		slices.Sort(out)
		return out
	}
	first := said()
	if len(slices.Compact(slices.Clone(first))) != 4 || !slices.Equal(first, said()) {
		t.Errorf("got %q, want four that differ and repeat", first)
	}
	if !strings.Contains(first[0], `"temperature":0.25`) || !strings.Contains(first[0], `"top_p":0.5`) || !strings.Contains(first[0], `"seed":`) {
		t.Errorf("got %q, want the plugin's temperature and the eval's rest", first[0])
	}
}

// Sampling that was not granted is refused, and nothing is sent.
func TestDriver_UngrantedSampling(t *testing.T) {
	p := load(t, "testplugins/conform-go", withEnv("temperature"), nil)
	r, w := newRun(t), newWatcher()
	s := spec(r, spool(t, r, abi.Task{Key: "a", Data: map[string]any{"drive": "ungranted", "prompt": "p"}}), startServer(t, 1, 1))
	s.Driver, s.Observer = p, w
	must(t, s)
	f := records(t, r, "finish")[0]
	if f.Failure == nil || f.Failure.Source != failure.Plugin || f.Failure.Kind != "denied" || f.Usage.InputTokens != 0 {
		t.Errorf("got %+v, want plugin/denied", f)
	}
}

// guestLog gets the guest's log lines, and looks at the server at that moment.
type guestLog struct {
	slog.Handler
	mu   sync.Mutex
	look func() error
	seen []string
	err  error
}

func (g *guestLog) Handle(_ context.Context, rec slog.Record) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := rec.Message
	rec.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	if strings.Contains(text, "candidate failed") {
		g.seen = append(g.seen, text)
		g.err = errors.Join(g.err, g.look())
	}
	return nil
}

func (g *guestLog) Enabled(context.Context, slog.Level) bool { return true }
func (g *guestLog) WithAttrs([]slog.Attr) slog.Handler       { return g }
func (g *guestLog) WithGroup(string) slog.Handler            { return g }
func (g *guestLog) with(look func() error) *slog.Logger      { g.look = look; return slog.New(g) }

// The server exits with 23 in mid-flight. The guest sees *sdk.ServerExitedError with the code, after
// every other call has left; the rollouts are errors {server, exited}; the same plugin runs well on a
// new generation.
func TestDriver_ServerExits23(t *testing.T) {
	if testing.Short() {
		t.Skip("builds plugins for wasip1")
	}
	var set *server.Set
	guest := &guestLog{}
	logger := guest.with(func() error {
		e, ok := errors.AsType[*server.ExitedError](set.Servers()[0].Err())
		if !ok || !e.Drained || e.InFlight != 8 {
			return errors.New("the guest heard of the exit while another call was inside")
		}
		return nil
	})
	engine, err := plugin.NewEngine(plugin.Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	t.Cleanup(func() { _ = engine.Close(ctx) })
	p, err := engine.Load(ctx, plugin.Spec{Alias: "best", Source: filepath.Join(hosttest.Root(t), bestOfN), Grants: withEnv("temperature")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(ctx) })

	once := func(do string, held int) order {
		return order{Do: do, Held: held, Once: filepath.Join(t.TempDir(), "once")}
	}
	list := []abi.Task{
		task("a", once("hold", 0), once("hold", 0), once("hold", 0), once("hold", 0)),
		task("b", once("hold", 0), once("hold", 0), once("hold", 0), once("die", 7)),
	}
	first := newRun(t)
	set = startServer(t, 1, 1)
	s := spec(first, spool(t, first, list...), set)
	s.Driver, s.Retries = p, 3
	got := run(t, s)
	if got.err != nil {
		t.Fatal(got.err)
	}
	for key, f := range byKey(t, first) {
		if f.Outcome != failure.Errored || f.Failure.Source != failure.Server || f.Failure.Kind != "exited" || f.Failure.Server == nil || *f.Failure.Server.Code != 23 {
			t.Errorf("%s: got %+v, want server/exited with code 23", key, f)
		}
	}
	if len(guest.seen) != 2 || guest.err != nil {
		t.Errorf("got %q, %v", guest.seen, guest.err)
	}
	for _, line := range guest.seen {
		if !strings.Contains(line, "the server exited with code 23") {
			t.Errorf("got %q, want *sdk.ServerExitedError with the code", line)
		}
	}
	if parts := lines[journal.Partial](t, first, journal.PartialFile); len(parts) != 7 || parts[0].Reason != "exited" || parts[0].Generation != 1 {
		t.Errorf("got %d partial episodes, want those of the 7 that were held", len(parts))
	}

	second := reopen(t, first)
	s = spec(second, spool(t, second, list...), startServer(t, 1, 2))
	s.Driver, s.Scorers = p, scorersOf(t, p, "candidates")
	must(t, s)
	if n := second.Counts(1); n.Completed != 2 {
		t.Errorf("got %+v, want both completed by the same plugin", n)
	}
}

// A guest that handles the exit goes on with what had arrived: one slot, so that the third run begins
// when the answers to the others are there.
func TestDriver_ExitHandledByTheGuest(t *testing.T) {
	p := load(t, bestOfN, withEnv("temperature"), map[string]any{"on_exit": "best", "n": 3})
	r := newRun(t)
	s := spec(r, spool(t, r, task("a", order{Say: "x"}, order{Say: "yy"}, order{Do: "die"})), startServer(t, 1, 1))
	s.Driver, s.Scorers, s.MaxConcurrent = p, scorersOf(t, p, "candidates"), 1
	if got := run(t, s); got.err != nil {
		t.Fatal(got.err)
	}
	if f := records(t, r, "finish")[0]; f.Outcome != failure.Completed {
		t.Fatalf("got %+v", f)
	}
	if sl := scoreLines(t, r); len(sl) != 1 || sl[0].Failure != nil || *sl[0].Scores[0].Value != 2 {
		t.Errorf("got %+v, want 2 candidates", sl)
	}
}

// A guest that passes on what it was told of the model is not at fault, and the failure is retryable
// as it was. What failed is kept.
func TestDriver_PassesOnAFailure(t *testing.T) {
	p := load(t, bestOfN, withEnv("temperature"), map[string]any{"n": 1})
	r := newRun(t)
	s := spec(r, spool(t, r, task("a", order{Error: "ProviderError", Status: 429}, order{Say: "ok"})), startServer(t, 1, 1))
	s.Driver, s.Retries = p, 1
	must(t, s)
	f := records(t, r, "finish")
	if len(f) != 2 || f[0].Failure.Source != failure.Model || f[0].Failure.Kind != "rate_limited" || f[1].Outcome != failure.Completed {
		t.Fatalf("got %+v", f)
	}
	if f[0].Episode.File != journal.ErroredFile || f[0].Usage.OutputTokens != 2 {
		t.Errorf("got %+v, want the failed episode and its usage", f[0])
	}
}

// A cancelled plugin-driven rollout is cancelled, whatever its plugin makes of it.
func TestDriver_Cancelled(t *testing.T) {
	p := load(t, bestOfN, withEnv("temperature"), nil)
	r := newRun(t)
	a, there := held(t, "a")
	s := spec(r, spool(t, r, a), startServer(t, 1, 1))
	s.Driver = p
	ctx, cancel := context.WithCancelCause(context.Background())
	done := start(ctx, s)
	hosttest.Until(t, "the run", there)
	cancel(errStop)
	if got := hosttest.Await(t, "the end of the attempt", done); got.err != nil || !errors.Is(got.Stopped, errStop) {
		t.Fatalf("got %+v", got)
	}
	if f := byKey(t, r)["a"]; f.Outcome != failure.Dropped || f.Failure.Kind != "drain" {
		t.Errorf("got %+v, want cancelled/drain", f)
	}
}

// The conformance guest awaits, takes, cancels and closes its handles in every way.
func TestDriver_Conformance(t *testing.T) {
	p := load(t, "testplugins/conform-go", withEnv("temperature"), nil)
	r := newRun(t)
	var list []abi.Task
	want := map[string]int{"run": 1, "chain": 2, "parallel": 8, "await": 3, "take": 1, "cancel": 1, "sampling": 1}
	for drive := range want {
		list = append(list, abi.Task{Key: drive, Data: map[string]any{"drive": drive, "prompt": "p"}})
	}
	s := spec(r, spool(t, r, list...), startServer(t, 1, 1))
	s.Driver, s.Scorers = p, scorersOf(t, p, "calls")
	must(t, s)
	for key, f := range byKey(t, r) {
		if f.Outcome != failure.Completed {
			t.Errorf("%s: got %+v", key, f)
		}
	}
	for _, l := range scoreLines(t, r) {
		if l.Failure != nil || len(l.Scores) != 1 || int(*l.Scores[0].Value) != want[l.Key] {
			t.Errorf("%s: got %+v, want %d calls", l.Key, l, want[l.Key])
		}
	}
}

// Who is at fault for a failed call of a plugin.
func TestBlame(t *testing.T) {
	alive, dead := startServer(t, 1, 1), startServer(t, 1, 2)
	now, cancel := context.WithCancelCause(context.Background())
	cancel(errStop)
	if err := dead.Stop(now); err != nil {
		t.Fatal(err)
	}
	end := dead.Servers()[0].Err()
	own := &plugin.GuestError{Code: "own"}
	passed := &plugin.GuestError{Code: "peer_error", Data: map[string]any{"source": "model", "kind": "rejected"}}
	trap := &plugin.TrapError{}
	told := failure.New(failure.Model, "rejected", "401")
	for name, c := range map[string]struct {
		set  *server.Set
		ctx  context.Context
		exit bool
		err  error
		want error
	}{
		"its own error":               {alive, context.Background(), false, own, own},
		"what it was told":            {alive, context.Background(), false, passed, told},
		"its own error after an exit": {dead, context.Background(), true, own, end},
		"its own error, no exit seen": {dead, context.Background(), false, own, own},
		"its own error in a cancel":   {alive, now, false, own, errStop},
		"a trap after an exit":        {dead, context.Background(), true, trap, trap},
		"an exit before a cancel":     {dead, now, true, own, end},
	} {
		v := &env{srv: c.set.Servers()[0], exit: c.exit, failures: map[string]*failure.Failure{"model/rejected": told}}
		if got := v.blame(c.ctx, c.err); got != c.want {
			t.Errorf("%s: got %v want %v", name, got, c.want)
		}
	}
}

// What comes back to a rollout call is bounded, and what is lost of runs that never ended with it; then nothing
// more is sent.
func TestEnv_Held(t *testing.T) {
	v := &env{engine: &engine{}, failures: map[string]*failure.Failure{}}
	partial := server.Reply{Partial: []wire.Trace{{ID: "1"}}}
	gone := failure.New(failure.Server, "connection_lost", "gone")
	if _, err := v.begin(0); err != nil {
		t.Fatal(err)
	}
	_, _ = v.keep(nil, new(zmqio.Progress), gone)
	_ = v.refuse(t.Context(), gone, partial)
	if len(v.lost) != 1 || v.held != 1024 {
		t.Errorf("%d lost, %d bytes held", len(v.lost), v.held)
	}
	v.held = maxHeld
	_, _ = v.keep(nil, new(zmqio.Progress), gone)
	_ = v.refuse(t.Context(), gone, partial)
	if len(v.lost) != 1 {
		t.Error("what is lost is kept without end")
	}
	_, err := v.begin(1)
	if f := failure.Of(err); err == nil || f.Kind != "too_large" {
		t.Errorf("got %v, want that there is too much", err)
	}
}
