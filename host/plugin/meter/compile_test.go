package meter_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

// much are modules that have much of one thing: what a compiler takes long for.
func much() map[string]*wasm {
	const block, loop, end, br, get = 0x02, 0x03, 0x0b, 0x0c, 0x20
	rep := func(n int, b ...byte) []byte { return bytes.Repeat(b, n) }
	turn := op(loop, 0x40, get, 0, 0x50, 0x0d, 0, end)
	functions := &wasm{}
	functions.fn("f", void, void, 0)
	for range 20_000 {
		functions.Funcs, functions.Code = append(functions.Funcs, u(0)), append(functions.Code, op(2, 0, end))
	}
	globals := (&wasm{}).fn("f", void, void, 0, rep(10_000, 0x10, 1)).fn("g", void, void, 0)
	for range 300 {
		globals.Globals = append(globals.Globals, op(0x7e, 1, 0x42, 0, end))
	}
	busy := func(locals, loops int) *wasm {
		var code []byte
		for l := range locals {
			code = append(code, cat(op(get), u(l), i64(3), op(0x7c, 0x21), u(l))...)
		}
		code = append(code, op(loop, 0x40)...)
		for range loops {
			code = append(code, turn...)
		}
		for l := range locals {
			code = append(code, cat(op(get), u(l), i64(5), op(0x7e, 0x21), u(l))...)
		}
		return (&wasm{}).fn("f", oneI, void, locals-1, code, op(get, 0, 0x50, 0x0d, 0, end))
	}
	// Every local is another one at every join.
	joins := func(locals, n int, turn func(l int) []byte) *wasm {
		var code []byte
		for k := range n {
			code = append(code, turn(k%locals)...)
		}
		code = append(code, end)
		for l := range locals {
			code = append(code, cat(op(get), u(l), op(0x1a))...)
		}
		return (&wasm{}).fn("f", oneI, void, locals-1, op(block, 0x40), code)
	}
	set := func(l int) []byte { return cat(op(get), u(l), i64(3), op(0x7c, 0x21), u(l)) }
	ranges := (&wasm{}).table(1).fn("f", void, void, 0, rep(7_000, 0x41, 0, 0xd0, 0x70, 0x41, 1, 0xfc, 17, 0))
	indirect := (&wasm{}).table(1).fn("f", void, void, 0, rep(8_000, 0x41, 0, 0x11, 0, 0))
	return map[string]*wasm{
		"values over blocks":    values(4_000, 400),
		"values of calls":       passing(20_000),
		"truncations":           truncations(18_000),
		"table.fill and locals": busyWith(1_000, 150, cat(i32(0), op(0xd0, 0x70), i32(1), op(0xfc, 17, 0))).table(1),
		"table.get in a row":    (&wasm{}).table(1).fn("f", void, void, 0, rep(20_000, 0x41, 0, 0x25, 0, 0x1a)),
		"table.fill in a row":   ranges,
		"call_indirect":         indirect,
		"divisions":             (&wasm{}).fn("f", void, void, 2, divisions(80_000)),
		"memory.fill in a row":  (&wasm{}).fn("f", void, void, 0, rep(8_000, 0x41, 0, 0x41, 0, 0x41, 1, 0xfc, 11, 0)),
		"ifs and locals": joins(500, 3_000, func(l int) []byte {
			return cat(op(get, 0, 0xa7, 0x04, 0x40), set(l), op(end))
		}),
		"br_if and locals": joins(500, 3_000, func(l int) []byte {
			return cat(set(l), op(get, 0, 0xa7, 0x0d, 0))
		}),
		"br_table and locals": joins(500, 300, func(l int) []byte {
			return cat(op(block, 0x40), set(l), op(get, 0, 0xa7, 0x0e), u(10), bytes.Repeat([]byte{0, 1}, 5), op(0, end))
		}),
		"many loops and locals": busy(850, 850),
		"nested blocks":         (&wasm{}).fn("f", void, void, 0, rep(3_900, block, 0x40), rep(3_900, end)),
		"nested loops":          (&wasm{}).fn("f", void, void, 0, rep(1_900, loop, 0x40, 0x41, 0, 0x0d, 0), rep(1_900, end)),
		"loops in a row":        (&wasm{}).fn("f", oneI, void, 0, bytes.Repeat(turn, 3_900)),
		"ifs in a row":          (&wasm{}).fn("f", oneI, void, 0, rep(3_900, get, 0, 0xa7, 0x04, 0x40, get, 0, 0x21, 0, end)),
		"br_if in a row":        (&wasm{}).fn("f", oneI, void, 0, rep(10_000, get, 0, 0xa7, 0x0d, 0)),
		"br_table":              (&wasm{}).fn("f", void, void, 0, i32(0), op(0x0e), u(16_000), rep(16_001, 0)),
		"loops and locals":      busy(500, 500),
		"many functions":        functions,
		"calls and globals":     globals,
		"straight":              (&wasm{}).fn("f", oneI, void, 0, rep(100_000, get, 0, 0x42, 3, 0x7c, 0x21, 0)),
		"values on the stack":   (&wasm{}).fn("f", oneI, void, 0, rep(2_000, get, 0, 0x42, 3, 0x7c), rep(100, 0x10, 1), rep(2_000, 0x1a)).fn("g", void, void, 0),
	}
}

// values are n on the stack that live through as many ifs.
func values(n, ifs int) *wasm {
	return (&wasm{}).fn("f", oneI, void, 0, bytes.Repeat(op(0x20, 0, 0x50), n),
		bytes.Repeat(cat(op(0x20, 0, 0xa7, 0x04, 0x40), i32(0), i32(5), op(0x36, 0, 0, 0x0b)), ifs),
		bytes.Repeat(op(0x36, 0, 0), n/2))
}

// busyWith has so many locals that live through n turns.
func busyWith(locals, n int, turn []byte) *wasm {
	var from, to []byte
	for l := range locals {
		from = append(from, cat(op(0x20), u(l), i64(3), op(0x7c, 0x21), u(l+1))...)
		to = append(to, cat(i32(8), op(0x20), u(l), op(0x37, 0, 0))...)
	}
	return (&wasm{}).fn("f", oneI, void, locals, from, bytes.Repeat(turn, n), to)
}

// passing hands 16 values n times from one function to another.
func passing(n int) *wasm {
	all := bytes.Repeat(oneI, 16)
	return (&wasm{}).fn("f", void, void, 0, bytes.Repeat(op(0x10, 1, 0x10, 2), n)).
		fn("g", void, all, 0, bytes.Repeat(i64(1), 16)).fn("h", all, void, 0)
}

// truncations are n, each of what the one before became.
func truncations(n int) *wasm {
	return (&wasm{}).fn("f", void, void, 0, op(0x44, 0, 0, 0, 0, 0, 0, 0, 0), bytes.Repeat(op(0xb1, 0xba), n), op(0x1a))
}

// compile is the time that the engine takes with one worker.
func compile(tb testing.TB, b []byte) time.Duration {
	tb.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	defer func() { _ = rt.Close(ctx) }()
	start := time.Now()
	if _, err := rt.CompileModule(ctx, b); err != nil {
		tb.Fatal(err)
	}
	return time.Since(start)
}

// BenchmarkCompile reports how far the estimated cost is from the time that compiling takes, and what
// the meter adds to it. The factors of the estimate come from here.
func BenchmarkCompile(b *testing.B) {
	modules := map[string][]byte{"Go guest": gsm8k(b)}
	for name, w := range much() {
		modules[name] = w.memory(1).Bytes()
	}
	for name, raw := range modules {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				info, err := meter.Check(raw, meter.Caps{})
				if err != nil {
					b.Fatal(err)
				}
				plain, metered := compile(b, raw), compile(b, rewrite(b, raw, meter.Options{}))
				b.ReportMetric(float64(metered)/float64(plain), "x")
				b.ReportMetric(float64(metered)/1e6, "ms")
				b.ReportMetric(float64(info.Cost)/float64(metered), "estimated/taken")
			}
		})
	}
}
