package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/hostile"
)

// fakeEnv answers each run by f and counts those that are running.
type fakeEnv struct {
	f func(ctx context.Context, n int, req abi.EnvRequest) (*abi.Episode, error)

	mu      sync.Mutex
	started int
	running int
}

func (e *fakeEnv) Run(ctx context.Context, _ int, req abi.EnvRequest) (int, *abi.Episode, error) {
	e.mu.Lock()
	e.started++
	e.running++
	n := e.started
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.running--
		e.mu.Unlock()
	}()
	view, err := e.f(ctx, n, req)
	return 100 + n, view, err
}

func episode(text string) *abi.Episode { return &abi.Episode{Completion: text} }

func ok(context.Context, int, abi.EnvRequest) (*abi.Episode, error) { return episode("42"), nil }

// exitedError is what rollout's Env gives after a server's death.
func exitedError() error {
	code := int64(23)
	return &abi.EnvError{
		Status: abi.ServerExited, Source: "server", Kind: "exited", Message: "exit code 23",
		Server: &abi.ServerFacts{Generation: 1, Code: &code, Tail: []string{"bye"}},
	}
}

const (
	impStart = iota
	impAwait
	impPoll
	impCancel
	impTake
	impClose
)

// driver is a guest that may drive rollouts: its imports are numbered as above.
func driver() *guest {
	return &guest{Manifest: driverManifest, Imports: []guestImport{
		env("env_start", 2), env("env_await", 1), env("env_poll", 1), env("env_cancel", 1), env("env_take", 3), env("env_close", 1),
	}}
}

// startRun calls env_start with a request.
func startRun(g *guest, req string) []byte {
	ptr, n := g.Put(req)
	return callImport(impStart, ptr, n)
}

const (
	plainRun  = `{"task_data":{"q":1}}`
	selectOne = `{"ok":{"episodes":[1],"selected":0}}`
)

func granted(s *Spec) { s.Grants.Env = &EnvGrant{Sampling: []string{"temperature"}} }

func TestRollout_EnvCalls(t *testing.T) {
	reply := int32(len(`{"ok":{"completion":"42"}}`))
	for _, tc := range []struct {
		name string
		body func(g *guest) []byte
		want string // "" = goes well
	}{
		{"start, await, take twice, close later", func(g *guest) []byte {
			return cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), expect(1), callImport(impPoll, 1), expect(1),
				callImport(impTake, 1, roomAt, 5), expect(reply), // too small: nothing written
				i32c(roomAt), op(0x2d, 0, 0), expect(0),
				callImport(impTake, 1, roomAt, 1000), expect(reply), callImport(impTake, 1, roomAt, 1000), expect(reply),
				i32c(roomAt), op(0x2d, 0, 0), expect('{'),
				callImport(impCancel, 1), expect(0), callImport(impAwait, 0), expect(int32(abi.NotFound)), g.Answer(selectOne))
		}, ""},
		{"two in order", func(g *guest) []byte {
			return cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), expect(1), startRun(g, plainRun), expect(2),
				callImport(impAwait, -1), expect(2), g.Answer(`{"ok":{"episodes":[2,1],"selected":1}}`))
		}, ""},
		{"foreign handles", func(g *guest) []byte {
			return cat(callImport(impPoll, 7), expect(int32(abi.Invalid)), callImport(impCancel, 7), expect(int32(abi.Invalid)),
				callImport(impTake, 7, roomAt, 10), expect(int32(abi.Invalid)), callImport(impClose, 7), expect(int32(abi.Invalid)),
				callImport(impTake, -1, roomAt, 10), expect(int32(abi.Invalid)), callImport(impAwait, -1), expect(int32(abi.NotFound)),
				startRun(g, plainRun), expect(1), callImport(impAwait, -1), expect(1), g.Answer(selectOne))
		}, ""},
		{"closed handle", func(g *guest) []byte {
			return cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), expect(1), callImport(impClose, 1), expect(0),
				callImport(impTake, 1, roomAt, 1000), expect(int32(abi.Invalid)), callImport(impClose, 1), expect(int32(abi.Invalid)),
				g.Answer(selectOne))
		}, "handle 1 is not an open handle"},
		{"requests", func(g *guest) []byte {
			return cat(startRun(g, `{"task_data":{},"client":{}}`), expect(int32(abi.Invalid)),
				startRun(g, `{"sampling":{}}`), expect(int32(abi.Invalid)), startRun(g, `[]`), expect(int32(abi.Invalid)),
				startRun(g, `{"task_data":{},"sampling":{"top_p":1}}`), expect(int32(abi.Denied)),
				startRun(g, `{"task_data":{"image":"x"}}`), expect(int32(abi.Denied)),
				startRun(g, `{"task_data":{},"sampling":{"temperature":1}}`), expect(1),
				callImport(impAwait, -1), expect(1), g.Answer(selectOne))
		}, ""},
		{"named twice", func(g *guest) []byte {
			return cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), expect(1), g.Answer(`{"ok":{"episodes":[1,1],"selected":0}}`))
		}, "named twice"},
		{"selected outside", func(g *guest) []byte {
			return cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), expect(1), g.Answer(`{"ok":{"episodes":[1],"selected":1}}`))
		}, "selected = 1"},
		{"nothing", func(g *guest) []byte { return g.Answer(`{"ok":{"episodes":[],"selected":0}}`) }, "0 episodes"},
		{"undeclared score", func(g *guest) []byte {
			return cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), expect(1),
				g.Answer(`{"ok":{"episodes":[1],"selected":0,"scores":[{"name":"x","value":1}]}}`))
		}, "kind driver"},
		{"1025 handles", func(g *guest) []byte {
			// (loop (br_if 0 (i32.ne (env_start …) LIMIT)))
			return cat(op(0x03, 0x40), startRun(g, plainRun), i32c(int32(abi.LimitReached)), op(0x47, 0x0d, 0x00, 0x0b),
				callImport(impPoll, 1024), drop(), callImport(impPoll, 1025), expect(int32(abi.Invalid)),
				callImport(impAwait, -1), drop(), g.Answer(`{"err":{"code":"enough","message":""}}`))
		}, "enough"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := driver()
			g.Body = tc.body(g)
			p := loadGuest(t, g, granted)
			e := &fakeEnv{f: ok}
			for range 2 { // a rollout never sees the one before
				_, err := p.Rollout(context.Background(), abi.RolloutRequest{}, e)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			}
			if e.running != 0 {
				t.Errorf("%d env calls still run", e.running)
			}
		})
	}
}

func TestRollout_Result(t *testing.T) {
	g := driver()
	g.Manifest += "[[scorer]]\nname = \"votes\"\nkind = \"driver\"\n"
	g.Body = cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), drop(), startRun(g, plainRun), expect(2), callImport(impAwait, -1), drop(),
		g.Answer(`{"ok":{"episodes":[2,1],"selected":1,"scores":[{"name":"votes","value":2}]}}`))
	p := loadGuest(t, g, granted)
	res, err := p.Rollout(context.Background(), abi.RolloutRequest{}, &fakeEnv{f: ok})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(res.Refs, res.Selected, res.Scores[0].Name, *res.Scores[0].Value)
	if want := "[102 101] 1 votes 2\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRollout_NotGranted(t *testing.T) {
	g := driver()
	g.Body = cat(startRun(g, plainRun), expect(int32(abi.Denied)), callImport(impAwait, 0), expect(int32(abi.Denied)),
		g.Answer(`{"err":{"code":"denied","message":""}}`))
	_, err := loadGuest(t, g).Rollout(context.Background(), abi.RolloutRequest{}, &fakeEnv{f: ok})
	checkFailure(t, err, "denied", "")
}

// The server's death is a status to the guest, which goes on: here it starts the run again.
func TestRollout_GuestSurvivesServerExit(t *testing.T) {
	want, _ := json.Marshal(abi.EnvReply{Err: envError(exitedError())})
	g := driver()
	g.Body = cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), expect(1),
		callImport(impTake, 1, roomAt, 1000), expect(int32(len(want))),
		startRun(g, plainRun), expect(2), callImport(impAwait, -1), expect(2), g.Answer(`{"ok":{"episodes":[2],"selected":0}}`))
	p := loadGuest(t, g, granted)
	for range 2 { // the plugin serves the next rollout too
		e := &fakeEnv{f: func(_ context.Context, n int, _ abi.EnvRequest) (*abi.Episode, error) {
			if n == 1 {
				return nil, exitedError()
			}
			return episode("42"), nil
		}}
		res, err := p.Rollout(context.Background(), abi.RolloutRequest{}, e)
		if err != nil || len(res.Refs) != 1 || res.Refs[0] != 102 {
			t.Errorf("got %v, %v", res, err)
		}
	}
}

// The caller's cancel reaches the guest as CANCELLED replies; the guest answers and the call ends well.
func TestRollout_CallerCancels_GuestAnswers(t *testing.T) {
	g := driver()
	g.Body = cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), expect(1), startRun(g, plainRun), expect(int32(abi.Cancelled)),
		g.Answer(`{"err":{"code":"seen","message":""}}`))
	p := loadGuest(t, g, granted)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := &fakeEnv{f: func(ctx context.Context, _ int, _ abi.EnvRequest) (*abi.Episode, error) {
		cancel()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}}
	_, err := p.Rollout(ctx, abi.RolloutRequest{}, e)
	checkFailure(t, err, "seen", "")
}

// While a call is parked neither a core nor its deadline is used, and Close still ends it.
func TestRollout_Parked(t *testing.T) {
	g := driver()
	g.Body = cat(startRun(g, plainRun), expect(1), callImport(impAwait, -1), drop(), g.Answer(selectOne))
	p := loadGuest(t, g, granted)
	const many = 20
	arrived, release := make(chan struct{}, many), make(chan struct{})
	e := &fakeEnv{f: func(ctx context.Context, _ int, _ abi.EnvRequest) (*abi.Episode, error) {
		arrived <- struct{}{}
		select {
		case <-release:
			return episode("42"), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}}
	errs := make(chan error, many)
	for range many {
		go func() {
			_, err := p.Rollout(context.Background(), abi.RolloutRequest{}, e)
			errs <- err
		}()
	}
	for range many { // more than cores: only possible if parked calls hold none
		<-arrived
	}
	close(release)
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	release = make(chan struct{})
	go func() {
		_, err := p.Rollout(context.Background(), abi.RolloutRequest{}, e)
		errs <- err
	}()
	<-arrived
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-errs; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if e.running != 0 {
		t.Errorf("%d env calls still run", e.running)
	}
}

func TestEnvError_Mapping(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want abi.Status
		kind string
	}{
		{exitedError(), abi.ServerExited, "exited"},
		{fmt.Errorf("run: %w", exitedError()), abi.ServerExited, "exited"},
		{context.Canceled, abi.Cancelled, "caller"},
		{errGuestCancel, abi.Cancelled, "caller"},
		{failure.New(failure.Cancelled, "drain", ""), abi.Cancelled, "drain"},
		{errors.New("what?"), abi.Internal, "internal"},
	} {
		if got := envError(tc.err); got.Status != tc.want || got.Kind != tc.kind {
			t.Errorf("%v: got %v %s, want %v %s", tc.err, got.Status, got.Kind, tc.want, tc.kind)
		}
	}
}

func TestTasks(t *testing.T) {
	page := func(tasks, next string) string { return `{"ok":{"tasks":[` + tasks + `],"next":"` + next + `"}}` }
	for _, tc := range []struct{ name, answer, want string }{
		{"good", page(`{"key":"a","data":{"n":1,"x":1.5,"l":[9007199254740993]},"target":4}`, ""), ""},
		{"bad key", page(`{"key":"a/../b","data":{}}`, ""), "bad task key"},
		{"no data", page(`{"key":"a"}`, ""), "has no data"},
		{"twice", page(`{"key":"a","data":{}},{"key":"a","data":{}}`, ""), "given twice"},
		{"standing still", page(``, "x"), "stands still"},
		{"endless", page(`{"key":"a","data":{}}`, "x"), "given twice"},
		{"task_env", page(`{"key":"a","data":{"image":"x"}}`, ""), `task_env = ["image"]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := &guest{Manifest: "provides = [\"task/v1\"]\n"}
			g.Body = g.Answer(tc.answer)
			g.Init = g.Answer(`{"ok":{"tasks":1}}`)
			p := loadGuest(t, g)
			if n := p.TaskCount(); n == nil || *n != 1 {
				t.Errorf("TaskCount = %v, want 1", n)
			}
			var got []abi.Task
			err := p.Tasks(context.Background(), func(task abi.Task) error { got = append(got, task); return nil })
			if tc.want != "" {
				checkFailure(t, err, "response", tc.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := fmt.Sprintf("%v %T %v", got[0].Data["l"], got[0].Data["n"], got[0].Target); s != "[9007199254740993] int64 4" {
				t.Errorf("got %s", s)
			}
		})
	}
}

func TestTasks_Most(t *testing.T) {
	g := &guest{Manifest: "provides = [\"task/v1\"]\n"}
	g.Body = g.Answer(`{"ok":{"tasks":[{"key":"a","data":{}},{"key":"b","data":{}},{"key":"c","data":{}}]}}`)
	p := loadGuest(t, g)
	for most, want := range map[int]string{2: "more than 2 tasks", 3: ""} {
		got := 0
		err := p.withOwn(t.Context(), func(in *instance) error {
			return p.enumerate(t.Context(), in, most, func(abi.Task) error { got++; return nil })
		})
		if want == "" && err != nil || got != most {
			t.Errorf("at most %d: %d tasks and %v", most, got, err)
		}
		if want != "" {
			checkFailure(t, err, "response", want)
		}
	}
}

// A limit that is low for a score leaves an enumeration its pages.
func TestTasks_LittleFuel(t *testing.T) {
	var endless hostile.Module
	for _, m := range hostile.Modules() {
		if m.Name == "tasks without end" {
			endless = m
		}
	}
	p := load(t, newEngine(t), Spec{Source: source(t, endless.Wasm), Limits: Limits{Fuel: 1000}})
	got := 0
	err := p.Tasks(t.Context(), func(abi.Task) error { got++; return nil })
	checkFailure(t, err, "fuel", fmt.Sprintf("2G instructions for all pages, after %d tasks", got))
	if got < fewPages*9/10 || got > fewPages {
		t.Errorf("%d pages, want nearly %d", got, fewPages)
	}
}

func TestTasks_YieldError(t *testing.T) {
	g := &guest{Manifest: "provides = [\"task/v1\"]\n"}
	g.Body = g.Answer(`{"ok":{"tasks":[{"key":"a","data":{}}]}}`)
	stop := errors.New("stop")
	if err := loadGuest(t, g).Tasks(context.Background(), func(abi.Task) error { return stop }); err != stop {
		t.Errorf("got %v, want %v", err, stop)
	}
}

// Requests wait in the host's memory: what runs is bounded by bytes too, and what ends makes room.
func TestEnvTable_BoundsRequests(t *testing.T) {
	release := make(chan struct{})
	e := &fakeEnv{f: func(context.Context, int, abi.EnvRequest) (*abi.Episode, error) { <-release; return episode(""), nil }}
	table := newEnvTable(e, abi.EncodingJSON, Grants{Env: &EnvGrant{}})
	defer table.end()
	raw := []byte(plainRun)
	table.asked = maxRequests - len(raw)
	if got := table.start(context.Background(), raw); got != 1 {
		t.Errorf("got %d, want a handle", got)
	}
	if got := table.start(context.Background(), raw); got != int32(abi.LimitReached) {
		t.Errorf("got %d, want LIMIT", got)
	}
	close(release)
	table.await(context.Background(), -1, func(wait func()) { wait() })
	if got := table.start(context.Background(), raw); got != 2 {
		t.Errorf("after the end of the first: got %d, want a handle", got)
	}
}

// A rollout that goes on after its caller has given up is cancelled, not a plugin that took too long.
func TestRollout_GraceUsedUp(t *testing.T) {
	p := loadGuest(t, driver(), granted)
	in, err := p.newInstance(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		c := p.newCall(abi.OpRollout, 0)
		c.env = newEnvTable(&fakeEnv{f: ok}, abi.EncodingJSON, p.grants)
		took, err := in.guarded(ctx, c, func(gctx context.Context) error { <-gctx.Done(); return nil })
		if !errors.Is(err, cause) || took != callGrace {
			t.Errorf("got %v after %v, want %v after %v", err, took, cause, callGrace)
		}
	})
}
