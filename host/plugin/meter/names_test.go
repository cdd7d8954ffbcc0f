package meter_test

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wevalr/wevalr/host/plugin/meter"
	format "github.com/wevalr/wevalr/testplugins/wasm"
)

// named adds a name section: the module's, and pairs of an index and a function's name.
func named(w *wasm, module string, pairs ...[]byte) []byte {
	part := func(id byte, body []byte) []byte { return cat(op(id), u(len(body)), body) }
	names := part(1, cat(u(len(pairs)), cat(pairs...)))
	return cat(w.Bytes(), format.Custom("name", cat(part(0, str(module)), names)))
}

// TestRewrite_LongNames: the engine writes the module's name before that of each function when the first of
// them traps, and both into each line of the trace.
func TestRewrite_LongNames(t *testing.T) {
	w := (&wasm{}).memory(1).fn("f", void, void, 0, op(0x00))
	w.Funcs, w.Code = slices.Repeat(w.Funcs, 1000), slices.Repeat(w.Code, 1000)
	long := strings.Repeat("ü", 50_000)
	module := rewrite(t, named(w, long, cat(u(0), str(long))), meter.Options{})
	for engine, cfg := range engines() {
		rt := wazero.NewRuntimeWithConfig(context.Background(), cfg)
		new(tank).install(t, rt)
		m, err := rt.InstantiateWithConfig(context.Background(), module, wazero.NewModuleConfig())
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = m.ExportedFunction("f").Call(context.Background())
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: a trap took %d bytes of the host's memory", engine, n)
		}
		if err == nil || !strings.Contains(err.Error(), "üü.üü") || len(err.Error()) > 2000 {
			t.Errorf("%s: got %.3000v, want a trace with the beginnings of both names", engine, err)
		}
		_ = rt.Close(context.Background())
	}
}

// TestRewrite_MoreNamesThanFunctions: two bytes of a name are 24 of the engine's memory.
func TestRewrite_MoreNamesThanFunctions(t *testing.T) {
	w := (&wasm{}).memory(1).fn("f", void, void, 0)
	for n, want := range map[int]bool{1: true, 2: false} {
		pairs := slices.Repeat([][]byte{cat(u(0), str("here"))}, n)
		out := rewrite(t, named(w, "m", pairs...), meter.Options{})
		if got := bytes.Contains(out, []byte("here")); got != want {
			t.Errorf("%d names of one function: kept: %t, want %t", n, got, want)
		}
	}
}
