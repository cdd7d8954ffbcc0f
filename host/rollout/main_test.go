package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/procwatch"
)

// TestMain is also the scripted env-server: the test binary run as "<test> helper:server <address>".
func TestMain(m *testing.M) {
	procwatch.Main()
	if len(os.Args) > 2 && os.Args[1] == "helper:server" {
		os.Exit(serve(os.Args[2]))
	}
	os.Exit(hosttest.Main(m))
}

// epoch is when every test run begins.
func epoch() time.Time { return time.Date(2026, 11, 29, 10, 15, 30, 0, time.UTC) }

// newRun makes a run directory.
func newRun(t testing.TB) *journal.Run {
	t.Helper()
	run, err := journal.Create(t.TempDir(), "test", epoch(), journal.Identity{Version: "0", TOML: []byte("version = 1\n")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Close(journal.CloseEvent{}) })
	return run
}

// reopen is the run's next attempt.
func reopen(t testing.TB, run *journal.Run) *journal.Run {
	t.Helper()
	if err := run.Close(journal.CloseEvent{At: epoch()}); err != nil && !errors.Is(err, journal.ErrClosed) {
		t.Fatal(err)
	}
	again, err := journal.Open(run.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close(journal.CloseEvent{}) })
	return again
}

// task is one whose data tells the scripted env-server what to do: orders by index, the last one
// holds for all that follow.
func task(key string, orders ...order) abi.Task {
	list := make([]any, len(orders))
	for i, o := range orders {
		text, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		list[i] = string(text)
	}
	return abi.Task{Key: key, Data: map[string]any{"orders": list, "prompt": key}, Target: "target of " + key}
}

// spool writes a task set.
func spool(t testing.TB, run *journal.Run, list ...abi.Task) *journal.Tasks {
	t.Helper()
	tasks, err := run.SpoolTasks(func(yield func(journal.Task, error) bool) {
		for _, task := range list {
			line, err := EncodeTask(&task)
			if !yield(journal.Task{Key: task.Key, JSON: line}, err) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

// startServer starts n scripted env-servers of a generation.
func startServer(t testing.TB, n, generation int) *server.Set {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	specs := make([]server.Spec, n)
	for i := range specs {
		log := fmt.Sprintf("server-%d-%d.log", i+1, generation)
		specs[i] = server.Spec{
			Argv: []string{self, "helper:server", "{address}"}, Env: os.Environ(), Instance: i + 1, Generation: generation,
			LogPath: filepath.Join(t.TempDir(), log), LogRel: "logs/attempt_1/" + log,
			StartTimeout: hosttest.Patience, StopGrace: 5 * time.Second,
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), hosttest.Patience)
	defer cancel()
	set, err := server.StartSet(ctx, specs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = set.Stop(now)
	})
	return set
}

// spec is an attempt on a run with these tasks.
func spec(run *journal.Run, tasks *journal.Tasks, servers Servers) Spec {
	return Spec{
		Journal: run, Tasks: tasks, Rollouts: 1, Servers: servers,
		Request: Request{Model: "m", Client: map[string]any{"type": "eval", "base_url": "http://127.0.0.1:1/v1", "api_key_var": "KEY"}},
	}
}

// outcome is what Run returned.
type outcome struct {
	Result
	err error
}

// start runs an attempt.
func start(ctx context.Context, s Spec) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		res, err := Run(ctx, s)
		ch <- outcome{res, err}
	}()
	return ch
}

// run runs an attempt to its end.
func run(t testing.TB, s Spec) outcome {
	t.Helper()
	return hosttest.Await(t, "the end of the attempt", start(context.Background(), s))
}

// must runs an attempt that nothing cuts short.
func must(t testing.TB, s Spec) {
	t.Helper()
	if got := run(t, s); got.err != nil || got.Stopped != nil {
		t.Fatalf("got %v, stopped by %v", got.err, got.Stopped)
	}
}

// watcher is an Observer that keeps what it is told.
type watcher struct {
	mu         sync.Mutex
	dispatched map[string]int
	ended      map[string][]failure.Outcome
	values     map[string][]*float64
	retried    int
	more       chan struct{} // one for each dispatch
}

func newWatcher() *watcher {
	return &watcher{
		dispatched: map[string]int{}, ended: map[string][]failure.Outcome{}, values: map[string][]*float64{},
		more: make(chan struct{}, 1<<16),
	}
}

func (w *watcher) Dispatched(key string, index int) {
	w.mu.Lock()
	w.dispatched[fmt.Sprintf("%s#%d", key, index)]++
	w.mu.Unlock()
	w.more <- struct{}{}
}

func (w *watcher) Ended(key string, index int, o failure.Outcome, _ *failure.Failure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf("%s#%d", key, index)
	w.ended[name] = append(w.ended[name], o)
}

func (w *watcher) Scored(scorer string, v *float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values[scorer] = append(w.values[scorer], v)
}

func (w *watcher) Retried() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.retried++
}

// record is a line of journal.jsonl.
type record struct {
	T       string           `json:"t"`
	Key     string           `json:"key"`
	Index   int              `json:"index"`
	Try     int              `json:"try"`
	Outcome failure.Outcome  `json:"outcome"`
	Failure *failure.Failure `json:"failure"`
	Usage   journal.Usage    `json:"usage"`
	Rewards map[string]*float64
	Episode journal.Ref `json:"episode"`
}

// lines reads a file of the run directory, one JSON value a line; absent files have none.
func lines[T any](t testing.TB, run *journal.Run, name string) []T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(run.Dir(), name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var out []T
	for line := range strings.Lines(string(raw)) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, v)
	}
	return out
}

// records are the journal's lines of one kind.
func records(t testing.TB, run *journal.Run, kind string) []record {
	t.Helper()
	if err := run.Close(journal.CloseEvent{At: epoch()}); err != nil && run.Err() == nil && !errors.Is(err, journal.ErrClosed) {
		t.Fatal(err)
	}
	var out []record
	for _, r := range lines[record](t, run, journal.JournalFile) {
		if r.T == kind {
			out = append(out, r)
		}
	}
	return out
}

// scoreLines are the lines of scores.jsonl.
func scoreLines(t testing.TB, run *journal.Run) []journal.ScoreLine {
	t.Helper()
	_ = records(t, run, "close")
	return lines[journal.ScoreLine](t, run, journal.ScoresFile)
}

// load builds and loads a plugin of this repository.
func load(t testing.TB, folder string, grants plugin.Grants, options map[string]any) *plugin.Plugin {
	t.Helper()
	if testing.Short() {
		t.Skip("builds plugins for wasip1")
	}
	ctx := context.Background()
	engine, err := plugin.NewEngine(plugin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(ctx) })
	p, err := engine.Load(ctx, plugin.Spec{Alias: filepath.Base(folder), Source: filepath.Join(hosttest.Root(t), folder), Grants: grants, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(ctx) })
	return p
}

// scorersOf are columns for scorers of a plugin.
func scorersOf(t testing.TB, p *plugin.Plugin, names ...string) []Scorer {
	t.Helper()
	var out []Scorer
	for _, name := range names {
		for _, sc := range p.Scorers() {
			if sc.Name == name {
				out = append(out, Scorer{Plugin: p, Alias: p.Alias(), Name: name, Kind: sc.Kind, View: sc.Views()})
			}
		}
	}
	if len(out) != len(names) {
		t.Fatalf("got %d scorers of %v", len(out), names)
	}
	return out
}

func withEnv(sampling ...string) plugin.Grants {
	return plugin.Grants{Env: &plugin.EnvGrant{Sampling: sampling}}
}
