package meter_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

const threeInts = "\x7f\x7f\x7f"

// bulkModule has fill, copy and init of any range, over 2 MiB and a segment of 1 MiB.
func bulkModule() *wasm {
	w := (&wasm{}).memory(32)
	w.DataCount = true
	all := op(0x20, 0, 0x20, 1, 0x20, 2)
	w.fn("fill", []byte(threeInts), void, 0, all, op(0xfc, 11, 0))
	w.fn("copy", []byte(threeInts), void, 0, all, op(0xfc, 10, 0, 0))
	w.fn("init", []byte(threeInts), void, 0, all, op(0xfc, 8, 1, 0))
	w.fn("drop", []byte(threeInts), void, 0, op(0xfc, 9, 1))
	w.Data = [][]byte{cat(op(1), u(3), op(1, 2, 3)), cat(op(1), u(1<<20), pattern(1<<20))}
	return w
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 7)
	}
	return b
}

// TestRewrite_LongRanges: what is done chunk by chunk does the same as at once, and costs the same.
func TestRewrite_LongRanges(t *testing.T) {
	raw := bulkModule().Bytes()
	metered := rewrite(t, raw, meter.Options{})
	const mib = 1 << 20
	for _, tc := range []struct {
		f           string
		to, from, n uint64
		traps       bool
	}{
		{"fill", 3, 7, 256<<10 + 1, false},
		{"fill", 5, 7, mib + 13, false},
		{"fill", mib, 7, mib, false},
		{"fill", mib + 1, 7, mib, true},
		{"fill", 0, 7, 1<<32 - 1, true},
		{"copy", 0, mib, mib, false},
		{"copy", 10, 0, mib + 77, false},
		{"copy", 0, 10, mib + 77, false},
		{"copy", 300_000, 0, mib, false},
		{"copy", 0, 300_000, mib, false},
		{"copy", 5, 5, mib, false},
		{"copy", 1<<32 - 1, 0, mib, true},
		{"copy", 0, mib + 1, mib, true},
		{"init", mib, 0, mib, false},
		{"init", 1, 3, mib - 3, false},
		{"init", 1, 4, mib - 3, true},
		{"init", mib + 1, 0, mib, true},
		{"init", 0, 1<<32 - 1, mib, true},
		{"drop", 0, 0, 0, false},
		{"init", 0, 0, mib, true},
		{"init", 0, 0, 0, false},
	} {
		for engine, cfg := range engines() {
			dropped := tc.f == "init" && tc.to == 0 && tc.from == 0
			want, _, wantErr := bulk(t, cfg, raw, nil, dropped, tc.f, tc.to, tc.from, tc.n)
			got, used, gotErr := bulk(t, cfg, metered, new(tank), dropped, tc.f, tc.to, tc.from, tc.n)
			if (wantErr != nil) != tc.traps || trapOf(gotErr) != trapOf(wantErr) || !bytes.Equal(got, want) {
				t.Errorf("%s(%d, %d, %d) on the %s: got %v, unmetered %v; same memory: %t", tc.f, tc.to, tc.from, tc.n, engine, gotErr, wantErr, bytes.Equal(got, want))
			}
			if units := 4 + 16 + int64(tc.n)/8; tc.f != "drop" && gotErr == nil && used != units {
				t.Errorf("%s(%d, %d, %d) on the %s: got %d units, want %d", tc.f, tc.to, tc.from, tc.n, engine, used, units)
			}
		}
	}
}

// bulk calls one function on a memory of no two equal halves and gives it back.
func bulk(t *testing.T, cfg wazero.RuntimeConfig, module []byte, tank *tank, dropped bool, f string, args ...uint64) (mem []byte, used int64, err error) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, cfg)
	defer func() { _ = rt.Close(ctx) }()
	if tank != nil {
		tank.install(t, rt)
	}
	m, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	m.Memory().Write(0, pattern(2<<20))
	if dropped {
		call(t, m, "drop", 0, 0, 0)
	}
	var before int64
	if tank != nil {
		before = tank.used(m)
	}
	_, err = m.ExportedFunction(f).Call(ctx, args...)
	if tank != nil {
		used = tank.used(m) - before
	}
	mem, _ = m.Memory().Read(0, 2<<20)
	return bytes.Clone(mem), used, err
}

// TestRewrite_RefFuncAllocatesNothing: the engine makes a function's reference anew, and keeps it, each time
// that ref.func runs.
func TestRewrite_RefFuncAllocatesNothing(t *testing.T) {
	w := (&wasm{}).table(1)
	w.fn("f", oneI, void, 0, op(0x03, 0x40), i32(0), op(0xd2, 0, 0x26, 0, 0x20, 0), i64(1), op(0x7d, 0x22, 0, 0x50, 0x45, 0x0d, 0, 0x0b))
	w.fn("via", oneI, void, 0, op(0x20, 0), i32(0), op(0x11, 0, 0))
	for engine, cfg := range engines() {
		rt := wazero.NewRuntimeWithConfig(context.Background(), cfg)
		new(tank).install(t, rt)
		m, err := rt.InstantiateWithConfig(context.Background(), rewrite(t, w.Bytes(), meter.Options{}), wazero.NewModuleConfig())
		if err != nil {
			t.Fatal(err)
		}
		f := m.ExportedFunction("f")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := f.Call(context.Background(), api.EncodeI64(100_000)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: 100,000 ref.func took %d bytes of the host's memory", engine, n)
		}
		call(t, m, "via", 1) // what it stored can be called
		_ = rt.Close(context.Background())
	}
}
