package meter_test

import (
	"context"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

// loops are small functions (n i64) → i64 in which the meter shows most.
func loops() *wasm {
	p, r := []byte{0x7e}, []byte{0x7e}
	const get, set, tee = 0x20, 0x21, 0x22
	w := (&wasm{}).memory(1)
	// xorshift: n turns of x ^= x<<13; x ^= x>>7; x ^= x<<17
	w.fn("xorshift", p, r, 1, i64(88172645463325252), op(set, 1, 0x03, 0x40),
		op(get, 1), i64(13), op(0x86, get, 1, 0x85, tee, 1), i64(7), op(0x88, get, 1, 0x85, tee, 1),
		i64(17), op(0x86, get, 1, 0x85, set, 1),
		op(get, 0), i64(1), op(0x7d, tee, 0, 0x50, 0x45, 0x0d, 0, 0x0b, get, 1))
	// count: nothing but the counter
	w.fn("count", p, r, 0, op(0x03, 0x40, get, 0), i64(1), op(0x7d, tee, 0, 0x50, 0x45, 0x0d, 0, 0x0b, get, 0))
	// memory: adds up bytes, stores the sum
	w.fn("memory", p, r, 1, op(0x03, 0x40),
		op(get, 0, 0xa7), i32(65535), op(0x71, get, 0, 0xa7), i32(65535), op(0x71, 0x31, 0, 0, get, 1, 0x7c, tee, 1, 0x3c, 0, 0),
		op(get, 0), i64(1), op(0x7d, tee, 0, 0x50, 0x45, 0x0d, 0, 0x0b, get, 1))
	// branchy: each turn takes one of two arms
	w.fn("branchy", p, r, 1, op(0x03, 0x40),
		op(get, 0), i64(3), op(0x83, 0x50, 0x04, 0x40, get, 1), i64(5), op(0x7c, set, 1, 0x05, get, 1), i64(3), op(0x7e, set, 1, 0x0b),
		op(get, 0), i64(1), op(0x7d, tee, 0, 0x50, 0x45, 0x0d, 0, 0x0b, get, 1))
	// fib: calls and little else
	w.fn("fib", p, r, 0, op(get, 0), i64(2), op(0x53, 0x04, 0x7e, get, 0, 0x05),
		op(get, 0), i64(1), op(0x7d, 0x10, 4, get, 0), i64(2), op(0x7d, 0x10, 4, 0x7c, 0x0b))
	return w
}

func instantiate(tb testing.TB, b []byte, t *tank) api.Module {
	tb.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	tb.Cleanup(func() { _ = rt.Close(ctx) })
	t.install(tb, rt)
	m, err := rt.InstantiateWithConfig(ctx, b, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func call(tb testing.TB, m api.Module, name string, args ...uint64) []uint64 {
	tb.Helper()
	res, err := m.ExportedFunction(name).Call(context.Background(), args...)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return res
}

// best is the shortest of some interleaved runs of each: noise only adds.
func best(rounds int, fs ...func()) []time.Duration {
	out := make([]time.Duration, len(fs))
	for range rounds {
		for i, f := range fs {
			start := time.Now()
			f()
			if d := time.Since(start); out[i] == 0 || d < out[i] {
				out[i] = d
			}
		}
	}
	return out
}

// BenchmarkLoops reports how many times slower metered loops are (goal: 2.5).
func BenchmarkLoops(b *testing.B) {
	raw := loops().Bytes()
	plain := instantiate(b, raw, new(tank))
	t := new(tank)
	metered := instantiate(b, rewrite(b, raw, meter.Options{}), t)
	for name, n := range map[string]uint64{"xorshift": 3e6, "count": 1e7, "memory": 3e6, "branchy": 5e6, "fib": 25} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				d := best(9, func() { call(b, plain, name, n) }, func() { call(b, metered, name, n) })
				b.ReportMetric(float64(d[1])/float64(d[0]), "x")
				before := t.used(metered)
				call(b, metered, name, n)
				b.ReportMetric(float64(t.used(metered)-before)/float64(d[1].Nanoseconds()), "units/ns")
			}
		})
	}
}
