package plugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/plugin/meter"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/wasm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newEngine(tb testing.TB) *Engine {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "cache")
	e, err := NewEngine(Options{CacheDir: dir, HostVersion: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return e
}

func source(tb testing.TB, b []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "guest.wasm")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func load(tb testing.TB, e *Engine, spec Spec) *Plugin {
	tb.Helper()
	p, err := e.Load(context.Background(), spec)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return p
}

func loadGuest(t testing.TB, g *guest, change ...func(*Spec)) *Plugin {
	t.Helper()
	spec := Spec{Source: source(t, g.Bytes())}
	for _, f := range change {
		f(&spec)
	}
	return load(t, newEngine(t), spec)
}

func TestLoad_Refusals(t *testing.T) {
	panics := []byte{
		0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 3, 2, 0, 0x5f, 0xa, 9, 2, 4, 0, 0x10, 1, 0xb, 2, 0, 0xb,
	}
	e := newEngine(t)
	for _, tc := range []struct {
		name  string
		guest *guest
		raw   []byte
		step  string
		want  string
	}{
		{name: "not wasm", raw: []byte("hello world"), step: "parse", want: "not a WebAssembly module"},
		{name: "cut", raw: (&guest{}).Bytes()[:60], step: "parse", want: "unexpected end"},
		{name: "the module that panics the compiler", raw: panics, step: "parse", want: "type index: 95"},
		{name: "no marker", guest: &guest{Marker: "-"}, step: "abi", want: "not a wevalr plugin"},
		{name: "other major", guest: &guest{Marker: "wevalr_abi_2_0"}, step: "abi", want: "rebuild"},
		{name: "newer minor", guest: &guest{Marker: "wevalr_abi_1_4"}, step: "abi", want: "needs ABI 1.4, this wevalr has 1.0"},
		{name: "bad marker", guest: &guest{Marker: "wevalr_abi_x"}, step: "abi", want: "not of the form"},
		{
			name: "other major by import", guest: &guest{Imports: []guestImport{{Module: "wevalr_v2", Name: "log", Params: "iii", Results: "i"}}},
			step: "abi", want: "needs ABI 2, this wevalr has 1.0",
		},
		{
			name: "unknown module", guest: &guest{Imports: []guestImport{{Module: "env", Name: "abort"}}},
			step: "imports", want: "env.abort is unknown",
		},
		{name: "unknown import", guest: &guest{Imports: []guestImport{env("exec", 1)}}, step: "imports", want: "not in ABI 1.0"},
		{
			name: "unknown wasi import", guest: &guest{Imports: []guestImport{{Module: wasi, Name: "launch"}}},
			step: "imports", want: "launch is unknown",
		},
		{
			name: "undeclared capability", guest: &guest{Imports: []guestImport{env("env_start", 2)}},
			step: "imports", want: "needs the capability env",
		},
		{
			name: "signature of an import", guest: &guest{Imports: []guestImport{env("log", 1)}},
			step: "imports", want: "want (i32, i32, i32) -> (i32)",
		},
		{name: "signature of an export", guest: &guest{WrongCall: true}, step: "exports", want: "want (i32, i32) -> (i64)"},
		{name: "start section", guest: &guest{StartSection: true}, step: "start section", want: "_initialize"},
		{name: "no memory", guest: &guest{NoMemory: true}, step: "memory", want: "memory count: 0"},
		{name: "no manifest", guest: &guest{Manifest: "-"}, step: "manifest", want: "wevalr plugin build"},
		{name: "memory over the limit", guest: &guest{Pages: [2]int{2000, 3000}}, step: "memory", want: "its limit is 64 MiB"},
		{name: "import in _initialize", guest: &guest{
			Imports: []guestImport{env("log_enabled", 1)}, Start: cat(callImport(0, 1), drop()),
		}, step: "", want: "no call is active"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := tc.raw
			if b == nil {
				b = tc.guest.Bytes()
			}
			p, err := e.Load(context.Background(), Spec{Source: source(t, b)})
			if err == nil {
				_ = p.Close(context.Background())
				t.Fatal("loaded")
			}
			var a *ABIError
			if tc.step != "" && (!errors.As(err, &a) || a.Step != tc.step) {
				t.Errorf("got %T %v, want an ABIError of step %q", err, err, tc.step)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want it to say %q", err, tc.want)
			}
		})
	}
}

// TestInspect_LongNames: a refusal quotes the beginning of what the module's author chose.
func TestInspect_LongNames(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, g := range map[string]*wasm.Guest{
		"function": {Imports: []wasm.Import{{Module: "wevalr_v1", Name: long}}},
		"version":  {Imports: []wasm.Import{{Module: "wevalr_v" + long, Name: "log"}}},
		"export":   {Exports: [][]byte{wasm.Export("wevalr:"+long, wasm.KindFunc, 0)}},
	} {
		_, err := Inspect("f.wasm", g.Bytes())
		if e, ok := errors.AsType[*ABIError](err); !ok || len(e.Error()) > 8<<10 {
			t.Errorf("%s: got %.300v, want a short refusal", name, err)
		}
	}
}

func TestEngine_Compile_RecoversFromPanic(t *testing.T) {
	e := newEngine(t)
	rt := e.newRuntime(context.Background(), wazero.NewRuntimeConfig(), 64)
	defer func() { _ = rt.Close(context.Background()) }()
	_, err := e.compile(context.Background(), rt, []byte{
		0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 3, 2, 0, 0x5f, 0xa, 9, 2, 4, 0, 0x10, 1, 0xb, 2, 0, 0xb,
	}, meter.Largest{})
	if err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("got %v, want an error", err)
	}
}

// Common modules are compiled on all cores, such as take much memory on few.
func TestCompilers(t *testing.T) {
	for _, tc := range []struct {
		cost uint64 // ns
		want int
	}{{0, 64}, {30e6, 64}, {950e6, 4}, {2e9, 2}, {4e9, 1}, {1e15, 1}} {
		if got := compilers(64, meter.Largest{Cost: tc.cost}); got != tc.want {
			t.Errorf("%d ms on 64 cores: %d at a time, want %d", tc.cost/1e6, got, tc.want)
		}
		if got := compilers(1, meter.Largest{Cost: tc.cost}); got != 1 {
			t.Errorf("%d ms on one core: %d at a time", tc.cost/1e6, got)
		}
	}
}

// TestScore_Hostile: each row ends in a typed error within its limit, the same plugin then loads
// and scores nothing worse, and nothing leaks (goleak).
func TestScore_Hostile(t *testing.T) {
	logs := &guest{Imports: []guestImport{env("log", 3)}}
	ptr, n := logs.Put(long(10000))
	logs.Body = cat(callImport(0, 3, ptr, n), drop(), callImport(0, 3, ptr, n), drop(), callImport(0, 3, ptr, n), drop(), unreachable())

	fails := &guest{Imports: []guestImport{env("fail", 2)}}
	ptr, n = fails.Put("boom \x1b[31mred")
	fails.Body = cat(callImport(0, ptr, n), drop(), unreachable())

	grow := &guest{Pages: [2]int{4, 1024}}
	// loop: trap if memory.grow(32) == -1, again
	grow.Body = op(0x03, 0x40, 0x41, 32, 0x40, 0x00, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b, 0x0c, 0x00, 0x0b, 0x00)

	pointer := &guest{Imports: []guestImport{env("log", 3)}}
	pointer.Body = cat(callImport(0, 1, -1, 100), drop(), unreachable())

	exits := &guest{Imports: []guestImport{{Module: wasi, Name: "proc_exit", Params: "i"}}}
	exits.Body = cat(callImport(0, 0), unreachable())

	denied := &guest{Manifest: driverManifest + "[[scorer]]\nname=\"correct\"\n", Imports: []guestImport{env("env_await", 1)}}
	denied.Manifest = strings.Replace(denied.Manifest, `"task/v1"`, `"scorer/v1"`, 1)
	denied.Body = cat(callImport(0, 0), expect(int32(abi.Denied)), denied.Answer(score("1")))

	for _, tc := range []struct {
		name  string
		guest *guest
		kind  string // of the failure; "" = the call goes well
		want  string
	}{
		{"good", scoring(score("0.5")), "", ""},
		{"null", scoring(score("null")), "", ""},
		{"unknown fields", scoring(`{"ok":{"scores":[{"value":1,"grease":[1]}],"grease":{}}}`), "", ""},
		{"env outside op 3", denied, "", ""},
		{"trap", &guest{Body: unreachable()}, "trap", "unreachable"},
		{"fail text", fails, "trap", "boom �[31mred"},
		{"log flood", logs, "trap", "xxx"},
		{"bad pointer", pointer, "trap", "outside of the memory"},
		{"proc_exit(0)", exits, "exit", "proc_exit(0)"},
		{"spin", &guest{Body: spin()}, "deadline", "over the limit of 100ms"},
		{"memory", grow, "memory", "64 MiB"},
		{"response out of bounds", &guest{Body: i64c(0x7fffffff<<32 | 10)}, "response", "outside of the memory"},
		{"response end out of bounds", &guest{Body: i64c(4*65536<<32 | 1)}, "response", "outside"},
		{"response too large", &guest{Body: i64c(0<<32 | (8<<20 + 1))}, "response", "over the limit of 8 MiB"},
		{"response empty", &guest{Body: i64c(0)}, "response", "empty"},
		{"no buffer", &guest{Buf: i32c(0)}, "response", "no room"},
		{"buffer out of bounds", &guest{Buf: i32c(-1)}, "response", "outside"},
		{"not json", scoring(`nonsense`), "response", "cannot be decoded"},
		{"invalid UTF-8", scoring("{\"ok\":{\"scores\":[{\"value\":1,\"label\":\"\xff\"}]}}"), "response", "UTF-8"},
		{"ok and err", scoring(`{"ok":{},"err":{}}`), "response", "exactly one"},
		{"neither", scoring(`{}`), "response", "exactly one"},
		{"wrong type", scoring(score(`"0.5"`)), "response", "cannot be decoded"},
		{"nan", scoring(score("NaN")), "response", "cannot be decoded"},
		{"infinite", scoring(score("1e999")), "response", "cannot be decoded"},
		{"above range", scoring(score("1.01")), "response", "outside of its range [0, 1]"},
		{"no score", scoring(`{"ok":{"scores":[]}}`), "response", "gave no score"},
		{"twice", scoring(`{"ok":{"scores":[{"value":1},{"name":"correct","value":1}]}}`), "response", "given twice"},
		{"bad name", scoring(`{"ok":{"scores":[{"name":"a\u001bb","value":1}]}}`), "response", "bad score name"},
		{"own error", scoring(`{"err":{"code":"bad_task","message":"no \u001b target","retryable":true}}`), "bad_task", "no � target"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cleanLoad := tc.name != "no buffer" && tc.name != "buffer out of bounds"
			spec := Spec{Source: source(t, tc.guest.Bytes()), Limits: Limits{ScoreWall: 20 * time.Second}}
			if tc.kind == "deadline" {
				spec.Limits.ScoreWall = 100 * time.Millisecond
			}
			p, err := newEngine(t).Load(context.Background(), spec)
			if cleanLoad {
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = p.Close(context.Background()) }()
				_, err = p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct"})
			}
			checkFailure(t, err, tc.kind, tc.want)
			if cleanLoad {
				_, again := p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct"})
				checkFailure(t, again, tc.kind, tc.want)
			}
		})
	}
}

func checkFailure(t *testing.T, err error, kind, want string) {
	t.Helper()
	if kind == "" {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	if err == nil {
		t.Errorf("got no error, want %s", kind)
		return
	}
	f := failure.Of(err)
	if f.Source != failure.Plugin || f.Kind != kind {
		t.Errorf("got %s/%s (%v), want plugin/%s", f.Source, f.Kind, err, kind)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want it to say %q", err, want)
	}
	if strings.ContainsRune(err.Error(), 0x1b) {
		t.Errorf("an escape sequence got through: %q", err)
	}
}

func TestScore_UnknownScorer(t *testing.T) {
	p := loadGuest(t, scoring(score("1")))
	_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "other"})
	checkFailure(t, err, "response", `no scorer "other"`)
	_, err = p.ScoreGroup(context.Background(), abi.ScoreGroupRequest{Scorer: "correct"})
	checkFailure(t, err, "response", "of kind group")
}

func TestScore_MsgpackInfinite(t *testing.T) {
	g := scoring("\x81\xa2ok\x81\xa6scores\x91\x81\xa5value\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00")
	g.Encoding = abi.EncodingMsgpack
	p := loadGuest(t, g)
	_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"})
	checkFailure(t, err, "response", "is +Inf")
}

func TestScore_CallerGivesUp(t *testing.T) {
	p := loadGuest(t, &guest{Body: spin()})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	defer timer.Stop()
	if _, err := p.Score(ctx, abi.ScoreRequest{Scorer: "correct"}); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func TestPlugin_Close_EndsCalls(t *testing.T) {
	p := loadGuest(t, &guest{Body: spin()})
	got := make(chan error, 1)
	go func() {
		_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct"})
		got <- err
	}()
	for !inGuest(p) {
		runtime.Gosched()
	}
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-got; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if _, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
}

func inGuest(p *Plugin) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.active) > 0
}

// counting is a scorer whose score is how often its instance has been called.
func counting(manifest string) *guest {
	g := &guest{Manifest: manifest + scorerManifest}
	ptr, n := g.Put(score("0"))
	digit := ptr + n - int32(len("0}]}}"))
	// mem[digit]++ ; respond
	g.Body = cat(i32c(digit), i32c(digit), op(0x2d, 0, 0), i32c(1), op(0x6a), op(0x3a, 0, 0), i64c(int64(ptr)<<32|int64(n)))
	return g
}

// A call never sees the one before, whatever the manifest says.
func TestScore_NothingIsLeft(t *testing.T) {
	for _, manifest := range []string{"", "limits = { isolation = \"reuse\" }\n", "limits = { isolation = \"fresh\" }\n"} {
		p := loadGuest(t, counting(manifest))
		for i := range 3 {
			res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"})
			if err != nil {
				t.Fatal(err)
			}
			if *res.Scores[0].Value != 1 {
				t.Errorf("%q: call %d saw %v calls, want 1", manifest, i+1, *res.Scores[0].Value)
			}
		}
	}
}

func TestErrors_ZeroValues(t *testing.T) {
	for _, err := range []failure.Failer{
		&ABIError{}, &ManifestError{}, &GrantError{}, &OptionError{}, &DigestError{}, &LimitError{}, &TrapError{},
		&ResponseError{}, &GuestError{}, &BuildError{},
	} {
		if err.Error() == "" || err.Failure() == nil || err.Failure().Kind == "" || err.Failure().Source == "" {
			t.Errorf("%T: zero value says %q, %v", err, err.Error(), err.Failure())
		}
	}
}
