package meter_test

import (
	"context"
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

// guest is an instance of a plugin with hosts that answer nothing.
type guest struct {
	tb   testing.TB
	mod  api.Module
	tank *tank // nil = unmetered
}

// startGuest instantiates module, which is raw or made of it, without running any of it.
func startGuest(tb testing.TB, cfg wazero.RuntimeConfig, raw, module []byte, t *tank) *guest {
	tb.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, cfg)
	tb.Cleanup(func() { _ = rt.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	info, err := meter.Check(raw, meter.Caps{})
	if err != nil {
		tb.Fatal(err)
	}
	host := rt.NewHostModuleBuilder(abi.Module)
	for _, im := range info.Imports {
		if im.Module == abi.Module {
			host.NewFunctionBuilder().WithGoModuleFunction(
				api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
					if len(stack) > 0 {
						stack[0] = 0
					}
				}), valueTypes(im.Type.Params), valueTypes(im.Type.Results)).Export(im.Name)
		}
	}
	if _, err := host.Instantiate(ctx); err != nil {
		tb.Fatal(err)
	}
	if t != nil {
		t.install(tb, rt)
	}
	mod, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		tb.Fatal(err)
	}
	return &guest{tb: tb, mod: mod, tank: t}
}

func valueTypes(ts []meter.ValType) []api.ValueType {
	out := make([]api.ValueType, len(ts))
	for i, t := range ts {
		out[i] = api.ValueType(t)
	}
	return out
}

// open runs the guest's start and init.
func (g *guest) open() *guest {
	call(g.tb, g.mod, abi.ExportInitialize)
	g.ask(abi.OpInit, abi.InitRequest{Host: abi.HostInfo{Name: "test", ABIMajor: 1}})
	return g
}

// ask makes one call and returns the response's bytes.
func (g *guest) ask(op abi.Op, req any) string {
	g.tb.Helper()
	raw, err := msgpack.Marshal(req)
	if err != nil {
		g.tb.Fatal(err)
	}
	ptr := call(g.tb, g.mod, abi.ExportBuf, uint64(len(raw)))[0]
	if !g.mod.Memory().Write(uint32(ptr), raw) {
		g.tb.Fatal("no room for the request")
	}
	res := call(g.tb, g.mod, abi.ExportCall, uint64(op), uint64(len(raw)))[0]
	out, ok := g.mod.Memory().Read(uint32(res>>32), uint32(res))
	if !ok {
		g.tb.Fatal("response out of bounds")
	}
	return string(out)
}

// score is a request of some 4 KB.
func score() abi.ScoreRequest {
	return abi.ScoreRequest{
		Scorer:  "flexible",
		Task:    abi.Task{Key: "test-0", Target: "18", Data: map[string]any{"prompt": "How many eggs?"}},
		Episode: abi.Episode{Completion: strings.Repeat("16 eggs less 3 for breakfast and 4 for muffins makes $9. ", 70) + "#### 18"},
	}
}

func TestRewrite_GoGuest_SameAnswersExactFuel(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin for wasip1")
	}
	raw := gsm8k(t)
	metered := rewrite(t, raw, meter.Options{})
	naive, err := meter.RewriteNaive(raw, meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	answers, fuel := map[string]bool{}, map[int64]bool{}
	for _, cfg := range engines() {
		answers[startGuest(t, cfg, raw, raw, nil).open().ask(abi.OpScore, score())] = true
		for _, module := range [][]byte{metered, metered, naive} {
			tank := new(tank)
			g := startGuest(t, cfg, raw, module, tank).open()
			answers[g.ask(abi.OpScore, score())] = true
			fuel[tank.used(g.mod)] = true
		}
	}
	if len(answers) != 1 || len(fuel) != 1 {
		t.Errorf("got %d answers %v, fuel %v, want one of each on both engines", len(answers), answers, fuel)
	}
	for a := range answers {
		if !strings.Contains(a, "scores") {
			t.Errorf("got %q, want a score", a)
		}
	}
}

// BenchmarkRewrite reports what reading and rewriting a large Go module takes, and how it grows.
func BenchmarkRewrite(b *testing.B) {
	raw, err := buildGo("ifeval")
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		var out []byte
		d := best(5, func() {
			if _, err := meter.Check(raw, meter.Caps{}); err != nil {
				b.Fatal(err)
			}
		}, func() { out = rewrite(b, raw, meter.Options{}) })
		b.ReportMetric(float64(d[0])/float64(time.Millisecond), "check-ms")
		b.ReportMetric(float64(d[1])/float64(time.Millisecond), "rewrite-ms")
		b.ReportMetric(float64(len(raw))/1e6, "MB")
		b.ReportMetric(float64(len(raw))/1e6/d[0].Seconds(), "check-MB/s")
		b.ReportMetric(float64(len(raw))/1e6/d[1].Seconds(), "rewrite-MB/s")
		b.ReportMetric(float64(len(out))/float64(len(raw)), "x-size")
	}
}
