package conform_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/wevalr/wevalr/host/plugin/meter"
	"github.com/wevalr/wevalr/plugins/abi"
)

// BenchmarkMeter compares each module with and without the meter, call by call in turn: the times are
// medians, and x-unmetered the median of the pairs' ratios (goals: 1.4 on scorers, 2.5 on loops).
func BenchmarkMeter(b *testing.B) {
	for _, c := range []struct {
		name, encoding string
		build          func(testing.TB, string) string
		golang         bool
	}{
		{"conform-c", abi.EncodingJSON, buildC, false},
		{"conform-as", abi.EncodingJSON, buildAssemblyScript, false},
		{"conform-rust", abi.EncodingJSON, buildRust, false},
		{"conform-go", "msgpack", buildGo, true},
		{"conform/testdata/json", abi.EncodingJSON, buildGo, true},
	} {
		b.Run("scorer/"+filepath.Base(c.name), func(b *testing.B) {
			dir, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(c.name)))
			if err != nil {
				b.Fatal(err)
			}
			raw := read(b, c.build(b, dir))
			plain, metered := startGuest(b, raw, false).open(c.encoding), startGuest(b, raw, true).open(c.encoding)
			if p, m := plain.score(), metered.score(); p != m || !strings.Contains(p, "ok") {
				b.Fatalf("got %q, unmetered %q, want equal scores", m, p)
			}
			if c.golang {
				plain.keep()
				metered.keep()
			}
			inTurn(b, 200, plain.time, metered.time)
		})
	}
	for _, c := range []struct {
		name string
		n    uint64
	}{{"xorshift", 5e4}, {"collatz", 500}, {"sieve", 1}, {"search", 2}, {"fib", 18}} {
		b.Run("loop/"+c.name, func(b *testing.B) {
			raw := read(b, buildLoops(b))
			plain, metered := startGuest(b, raw, false), startGuest(b, raw, true)
			timed := func(g *guest) func() time.Duration {
				return func() time.Duration {
					start := time.Now()
					g.call(c.name, c.n)
					return time.Since(start)
				}
			}
			inTurn(b, 200, timed(plain), timed(metered))
		})
	}
}

// inTurn reports what it finds in some rounds of both.
func inTurn(b *testing.B, rounds int, plain, metered func() time.Duration) {
	b.Helper()
	var p, m []time.Duration
	var x []float64
	for b.Loop() {
		for i := range rounds {
			var one, other time.Duration
			if i%2 == 0 {
				one, other = plain(), metered()
			} else {
				other, one = metered(), plain()
			}
			p, m, x = append(p, one), append(m, other), append(x, float64(other)/float64(one))
		}
	}
	b.ReportMetric(float64(median(p).Nanoseconds()), "ns/unmetered")
	b.ReportMetric(float64(median(m).Nanoseconds()), "ns/metered")
	b.ReportMetric(median(x), "x-unmetered")
}

func median[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

// guest is an instance of a plugin, with a host that answers nothing.
type guest struct {
	tb      testing.TB
	mod     api.Module
	request []byte
	image   []byte // of its memory before each call; nil = what the last one left
}

func startGuest(tb testing.TB, raw []byte, metered bool) *guest {
	tb.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	tb.Cleanup(func() { _ = rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	module := raw
	if metered {
		var err error
		if module, err = meter.Rewrite(raw, meter.Options{}); err != nil {
			tb.Fatal(err)
		}
	}
	compiled, err := rt.CompileModule(ctx, module)
	if err != nil {
		tb.Fatal(err)
	}
	hosts := map[string]wazero.HostModuleBuilder{}
	for _, f := range compiled.ImportedFunctions() {
		from, name, _ := f.Import()
		if from == wasi_snapshot_preview1.ModuleName {
			continue
		}
		if hosts[from] == nil {
			hosts[from] = rt.NewHostModuleBuilder(from)
		}
		answer := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			if len(stack) > 0 {
				stack[0] = 0
			}
		})
		if from == "wevalr:meter" {
			// The host's own refill grants so much at a time.
			answer = func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = 100_000 }
		}
		hosts[from].NewFunctionBuilder().WithGoModuleFunction(answer, f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, h := range hosts {
		if _, err := h.Instantiate(ctx); err != nil {
			tb.Fatal(err)
		}
	}
	mod, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize))
	if err != nil {
		tb.Fatal(err)
	}
	return &guest{tb: tb, mod: mod}
}

func (g *guest) call(name string, args ...uint64) uint64 {
	g.tb.Helper()
	res, err := g.mod.ExportedFunction(name).Call(context.Background(), args...)
	if err != nil {
		g.tb.Fatalf("%s: %v", name, err)
	}
	return res[0]
}

// open runs init, makes the request, of some 4 KB, and warms up.
func (g *guest) open(encoding string) *guest {
	g.tb.Helper()
	marshal := msgpack.Marshal
	if encoding == abi.EncodingJSON {
		marshal = json.Marshal
	}
	encode := func(v any) []byte {
		out, err := marshal(v)
		if err != nil {
			g.tb.Fatal(err)
		}
		return out
	}
	g.ask(abi.OpInit, encode(abi.InitRequest{Host: abi.HostInfo{Name: "test", ABIMajor: 1}}))
	g.request = encode(scoreRequest())
	for range 3 {
		g.score()
	}
	return g
}

// keep makes every call start from the memory that is there now. A Go guest would grow else; what keeps
// state in globals would break.
func (g *guest) keep() {
	mem, _ := g.mod.Memory().Read(0, g.mod.Memory().Size())
	g.image = bytes.Clone(mem)
}

func (g *guest) score() string { return g.ask(abi.OpScore, g.request) }

func (g *guest) ask(op abi.Op, request []byte) string {
	g.tb.Helper()
	if !g.mod.Memory().Write(uint32(g.call(abi.ExportBuf, uint64(len(request)))), request) {
		g.tb.Fatal("no room for the request")
	}
	res := g.call(abi.ExportCall, uint64(op), uint64(len(request)))
	out, ok := g.mod.Memory().Read(uint32(res>>32), uint32(res))
	if !ok {
		g.tb.Fatal("response out of bounds")
	}
	return string(out)
}

// time is what a scoring call takes.
func (g *guest) time() time.Duration {
	g.mod.Memory().Write(0, g.image)
	start := time.Now()
	g.score()
	return time.Since(start)
}

func scoreRequest() abi.ScoreRequest {
	words := strings.Repeat("four ", 200)
	return abi.ScoreRequest{
		Scorer: "length", Task: abi.Task{Key: "k", Data: map[string]any{"prompt": words}, Target: "t"},
		Episode: abi.Episode{Completion: words, Messages: []abi.Message{{Role: "user", Content: words}, {Role: "assistant", Content: words}}},
	}
}

func buildGo(tb testing.TB, dir string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "go.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-trimpath", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	return out
}

func buildLoops(tb testing.TB) string {
	tb.Helper()
	clang, ld := need(tb, "C", "clang-22", "clang"), need(tb, "C", "wasm-ld-22", "wasm-ld")
	out := filepath.Join(tb.TempDir(), "loops.wasm")
	run(tb, "testdata", clang, "--target=wasm32-unknown-unknown", "-O2", "-Wall", "-Wextra", "-nostdlib", "-ffreestanding",
		"-fuse-ld="+ld, "-Wl,--no-entry", "-Wl,--strip-all", "-o", out, "loops.c")
	return out
}
