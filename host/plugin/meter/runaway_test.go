package meter_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

// runaway is a module whose f has no end, or none worth waiting for, and what ends it.
type runaway struct {
	w    *wasm
	want error
}

func runaways(depth int) map[string]runaway {
	const loop, end, br = 0x03, 0x0b, 0x0c
	fill := cat(i32(0), i32(0), i32(64<<20), op(0xfc, 11, 0))
	big := (&wasm{}).memory(1024)
	return map[string]runaway{
		"loop": {(&wasm{}).fn("f", void, void, 0, op(loop, 0x40, br, 0, end)), errFuel},
		"loop of br_table": {
			(&wasm{}).fn("f", void, void, 0, op(loop, 0x40), i32(7), op(0x0e, 3, 0, 0, 0, 0, end)), errFuel,
		},
		"nested loops": {
			(&wasm{}).fn("f", void, void, 0, op(loop, 0x40, loop, 0x40, 0x02, 0x40, br, 2, end, br, 0, end, end)), errFuel,
		},
		"recursion": {(&wasm{}).fn("f", void, void, 0, op(0x10, 0)), errDepth},
		"recursion by a table": {
			func() *wasm {
				w := (&wasm{}).table(1).fn("f", void, void, 0, i32(0), op(0x11, 0, 0))
				w.Elements = append(w.Elements, cat(op(0), i32(0), op(end, 1, 0)))
				return w
			}(), errDepth,
		},
		"exponential recursion": {
			(&wasm{}).fn("f", void, void, 0, i64(60), op(0x10, 1)).fn("g", oneI, void, 0,
				op(0x20, 0, 0x50, 0x04, 0x40, 0x0f, end), op(0x20, 0), i64(1), op(0x7d, 0x10, 1),
				op(0x20, 0), i64(1), op(0x7d, 0x10, 1)), errFuel,
		},
		// Each frame has a long way to run when it returns: few may be open.
		"frames with much to do": {
			(&wasm{}).fn("f", void, void, 0, op(0x10, 0), bytes.Repeat(cat(i64(1), op(0x1a)), 200_000)), errDepth,
		},
		"memory.fill in a row": {big.fn("f", void, void, 0, bytes.Repeat(fill, 200)), errFuel},
		"memory.copy in a row": {
			(&wasm{}).memory(1024).fn("f", void, void, 0,
				bytes.Repeat(cat(i32(0), i32(8), i32(32<<20), op(0xfc, 10, 0, 0)), 300)), errFuel,
		},
		"table.grow in a row": {
			(&wasm{}).table(1).fn("f", void, void, 0,
				bytes.Repeat(cat(op(0xd0, 0x70), i32(60_000), op(0xfc, 15, 0, 0x1a)), 20_000)), errFuel,
		},
		"memory.init in a row": {
			func() *wasm {
				w := (&wasm{}).memory(1024).fn("f", void, void, 0,
					bytes.Repeat(cat(i32(0), i32(0), i32(16<<20), op(0xfc, 8, 0, 0)), 300))
				w.DataCount = true
				w.Data = [][]byte{cat(op(1), u(16<<20), make([]byte, 16<<20))}
				return w
			}(), errFuel,
		},
		"table.copy in a row": {
			(&wasm{}).table(60_001).fn("f", void, void, 0, bytes.Repeat(cat(i32(0), i32(1), i32(60_000), op(0xfc, 14, 0, 0)), 1_000)), errFuel,
		},
		"table.fill in a row": {
			(&wasm{}).table(60_000).fn("f", void, void, 0, bytes.Repeat(cat(i32(0), op(0xd0, 0x70), i32(60_000), op(0xfc, 17, 0)), 1_000)), errFuel,
		},
		"table.set in a loop": {
			(&wasm{}).table(1).fn("f", void, void, 0, op(loop, 0x40), bytes.Repeat(cat(i32(0), i32(0), op(0x25, 0, 0x26, 0)), 10), op(br, 0, end)), errFuel,
		},
		"ref.func in a loop": {
			(&wasm{}).table(1).fn("f", void, void, 0, op(loop, 0x40), bytes.Repeat(op(0xd2, 0, 0x1a), 10), op(br, 0, end)), errFuel,
		},
		"calls by a table": {
			func() *wasm {
				w := (&wasm{}).table(1).fn("f", void, void, 0, op(loop, 0x40), bytes.Repeat(cat(i32(0), op(0x11, 1, 0)), 10), op(br, 0, end)).fn("g", void, void, 0)
				w.Types[1] = w.Types[0]
				w.Elements = append(w.Elements, cat(op(0), i32(0), op(end, 1, 1)))
				return w
			}(), errFuel,
		},
		"empty calls": {
			(&wasm{}).fn("f", void, void, 0, op(loop, 0x40), bytes.Repeat(op(0x10, 1), 10), op(br, 0, end)).fn("g", void, void, 0), errFuel,
		},
		"divisions": {
			(&wasm{}).fn("f", void, void, 2, op(loop, 0x40), divisions(10), op(br, 0, end)), errFuel,
		},
		"roots": {
			func() *wasm {
				w := (&wasm{}).fn("f", void, void, 0, op(0x44, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x21, 0, loop, 0x40), bytes.Repeat(op(0x20, 0, 0x9f, 0x21, 0), 10), op(br, 0, end))
				w.Code[0] = cat(u(int(w.Code[0][0])+2), op(1, 1, 0x7c), w.Code[0][2:])
				return w
			}(), errFuel,
		},
		// Each load waits for the one before, and misses every cache.
		"loads far apart": {
			(&wasm{}).memory(1024).fn("f", void, void, 1, op(loop, 0x40), bytes.Repeat(cat(
				op(0x20, 0), i64(6364136223846793005), op(0x7e), i64(1442695040888963407), op(0x7c, 0x22, 0), i64(39), op(0x88, 0xa7, 0x29, 0, 0, 0x20, 0, 0x7c, 0x21, 0)), 4), op(br, 0, end)), errFuel,
		},
		"stores far apart": {
			(&wasm{}).memory(1024).fn("f", void, void, 1, op(loop, 0x40), bytes.Repeat(cat(
				op(0x20, 0), i64(4096+64), op(0x7c, 0x22, 0, 0xa7), i32(0x3fffff8), op(0x71, 0x20, 0, 0x37, 0, 0)), 4), op(br, 0, end)), errFuel,
		},
		// Down as far as depth allows, then back up: what is left to do in each frame runs on end.
		"the way back": {
			(&wasm{}).fn("f", void, void, 0, op(loop, 0x40), i64(int64(depth)*9/10), op(0x10, 1, br, 0, end)).fn("g", oneI, void, 0,
				op(0x20, 0, 0x50, 0x04, 0x40, 0x0f, end), op(0x20, 0), i64(1), op(0x7d, 0x10, 1), divisions(160)), errFuel,
		},
		"the way back by ifs": {
			(&wasm{}).fn("f", void, void, 0, op(loop, 0x40), i64(int64(depth)*9/10), op(0x10, 1, br, 0, end)).fn("g", oneI, void, 0,
				op(0x20, 0, 0x50, 0x04, 0x40, 0x0f, end), op(0x20, 0), i64(1), op(0x7d, 0x10, 1),
				bytes.Repeat(cat(op(0x20, 0, 0xa7, 0x04, 0x40), divisions(8), op(end)), 18)), errFuel,
		},
		"a long leaf": {
			(&wasm{}).fn("f", void, void, 0, op(loop, 0x40, 0x10, 1, br, 0, end)).fn("g", void, void, 2, divisions(100_000)), errFuel,
		},
		"leaves without loops": {
			func() *wasm {
				w := (&wasm{}).fn("f", void, void, 0, bytes.Repeat(op(0x10, 1), 20_000))
				return w.fn("leaf", void, void, 0, bytes.Repeat(cat(i64(1), op(0x1a)), 20_000))
			}(), errFuel,
		},
	}
}

// divisions are n that wait for one another, of the locals 0 and 1.
func divisions(n int) []byte {
	return bytes.Repeat(cat(op(0x20, 0), i64(-1), op(0x84), i64(3), op(0x80, 0x21, 0)), n)
}

// TestRewrite_Runaway: whatever has no end is ended by the refill import.
func TestRewrite_Runaway(t *testing.T) {
	const depth = 1_900
	for name, tc := range runaways(depth) {
		raw := tc.w.Bytes()
		for engine, cfg := range engines() {
			tank := &tank{budget: 50_000_000}
			if engine == "interpreter" {
				tank.budget = 5_000_000
			}
			opt := meter.Options{MaxDepth: depth}
			_, used, err := run(t, cfg, rewrite(t, raw, opt), tank, "f")
			if !errors.Is(err, tc.want) {
				t.Errorf("%s on the %s: got %v after %d units, want %v", name, engine, err, used, tc.want)
			}
		}
	}
}

// TestRewrite_LooksInEachElse: the looks of arms that are not taken are none.
func TestRewrite_LooksInEachElse(t *testing.T) {
	const levels, budget = 20, 10_000
	// Each arm that is not taken ends just after it was due to look.
	code := cat(i32(0), op(0x1a))
	for range levels {
		code = cat(code, op(0x20, 0, 0xa7), bytes.Repeat(op(0x45), 8183), op(0x1a, 0x20, 0, 0xa7, 0x04, 0x40),
			i32(0), op(0x1a), i32(0), op(0x1a, 0x05))
	}
	w := (&wasm{}).fn("f", oneI, void, 0, code, bytes.Repeat(op(0x0b), levels))
	for engine, cfg := range engines() {
		_, used, err := run(t, cfg, rewrite(t, w.Bytes(), meter.Options{}), &tank{quantum: 1000, budget: budget}, "f", 0)
		if !errors.Is(err, errFuel) || used > budget+2*8192 {
			t.Errorf("%s: got %v after %d units, want %v after some %d", engine, err, used, errFuel, budget)
		}
	}
}

// BenchmarkRunaway reports the time on a core between two refills of the quantum that the host grants: how
// late it sees that a call must end, and how long a collection of garbage may have to wait (goal: 1 ms).
func BenchmarkRunaway(b *testing.B) {
	const quantum = 100_000
	shapes := runaways(16_384)
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var gaps []time.Duration
			for range b.N {
				t := &tank{quantum: quantum, budget: 50_000_000, clock: cpu}
				m := instantiate(b, rewrite(b, shapes[name].w.Bytes(), meter.Options{}), t)
				_, err := m.ExportedFunction("f").Call(context.Background())
				if want := shapes[name].want; !errors.Is(err, want) {
					b.Fatalf("got %v, want %v", err, want)
				}
				gaps = append(append(gaps, t.gaps...), cpu()-t.last)
			}
			slices.Sort(gaps)
			for _, p := range []struct {
				unit string
				at   float64
			}{{"ms-p50", 0.5}, {"ms-p99", 0.99}, {"ms-max", 1}} {
				b.ReportMetric(float64(gaps[int(p.at*float64(len(gaps)-1))])/1e6, p.unit)
			}
		})
	}
}
