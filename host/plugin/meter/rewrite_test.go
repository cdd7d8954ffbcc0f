package meter_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wevalr/wevalr/host/plugin/meter"
	"github.com/wevalr/wevalr/plugins/abi"
)

// run calls f of a metered module with so much fuel and gives what it burnt.
func run(t *testing.T, cfg wazero.RuntimeConfig, module []byte, tank *tank, f string, args ...uint64) ([]uint64, int64, error) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, cfg.WithMemoryLimitPages(1024))
	defer func() { _ = rt.Close(ctx) }()
	tank.install(t, rt)
	m, err := rt.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.ExportedFunction(f).Call(ctx, args...)
	return res, tank.used(m), err
}

var (
	void = []byte(nil)
	oneI = []byte{0x7e}
)

// TestRewrite_Fuel counts by hand.
func TestRewrite_Fuel(t *testing.T) {
	w := (&wasm{}).memory(1).table(1)
	w.fn("straight", void, oneI, 0, i64(1), i64(2), op(0x7c))
	w.fn("turns", oneI, void, 0, op(0x03, 0x40, 0x20, 0), i64(1), op(0x7d, 0x22, 0, 0x50, 0x45, 0x0d, 0, 0x0b))
	w.fn("fill", void, void, 0, i32(0), i32(1), i32(8000), op(0xfc, 11, 0))
	w.fn("grow", void, void, 0, i32(2), op(0x40, 0, 0x1a))
	w.fn("grow too much", void, void, 0, i32(-1), op(0x40, 0, 0x1a))
	w.fn("table", void, void, 0, op(0xd0, 0x70), i32(100), op(0xfc, 15, 0, 0x1a))
	module := rewrite(t, w.Bytes(), meter.Options{})
	for name, tc := range map[string]struct {
		args []uint64
		want int64
	}{
		"straight":      {nil, 3},
		"turns":         {[]uint64{1000}, 7000},
		"fill":          {nil, 4 + 16 + 1000},
		"grow":          {nil, 3 + 16 + 2*8192},
		"grow too much": {nil, 3 + 16},
		"table":         {nil, 4 + 16 + 100},
	} {
		for engine, cfg := range engines() {
			if _, used, err := run(t, cfg, module, new(tank), name, tc.args...); err != nil || used != tc.want {
				t.Errorf("%s on the %s: got %d units, %v, want %d", name, engine, used, err, tc.want)
			}
		}
	}
}

func TestRewrite_Reserved(t *testing.T) {
	export := (&wasm{}).fn("wevalr:fuel", void, void, 0)
	imports := &wasm{}
	imports.Imports = [][]byte{cat(str("wevalr:meter"), str("refill"), op(0, 0))}
	imports.Types = [][]byte{op(0x60, 1, 0x7f, 1, 0x7e)}
	// One past what there is: what would be the refill, the fuel, the helpers.
	call := (&wasm{}).fn("f", void, void, 0, op(0x10, 1))
	fuel := (&wasm{}).fn("f", void, oneI, 0, op(0x23, 0))
	ref := (&wasm{}).fn("f", void, void, 0, op(0xd2, 1, 0x1a))
	table := (&wasm{}).table(70_000).fn("f", void, void, 0)
	element := (&wasm{}).table(1).fn("f", void, void, 0)
	element.Elements = [][]byte{cat(op(0), i32(0), op(0x0b, 1, 1))}
	exported := (&wasm{}).fn("f", void, void, 0)
	exported.Exports = append(exported.Exports, cat(str("fuel"), op(3, 0)))
	initial := (&wasm{}).fn("f", void, void, 0)
	initial.Globals = [][]byte{op(0x70, 0, 0xd2, 1, 0x0b)}
	for name, tc := range map[string]struct {
		w    *wasm
		rule string
	}{
		"export": {export, "export name"}, "import": {imports, "import name"},
		"call": {call, "function index"}, "global": {fuel, "global index"}, "table": {table, "table size"},
		"ref.func": {ref, "function index"}, "element": {element, "function index"},
		"exported global": {exported, "export index"}, "initial value": {initial, "function index"},
	} {
		_, err := meter.Rewrite(tc.w.Bytes(), meter.Options{})
		var r *meter.Refusal
		if !errors.As(err, &r) || r.Rule != tc.rule || r.Offset == 0 {
			t.Errorf("%s: got %v, want a refusal of the %s with its place", name, err, tc.rule)
		}
	}
}

func TestRewrite_TableIsClamped(t *testing.T) {
	w := (&wasm{}).table(1).fn("f", oneI, oneI, 0, op(0xd0, 0x70, 0x20, 0, 0xa7, 0xfc, 15, 0, 0xac))
	module := rewrite(t, w.Bytes(), meter.Options{MaxTable: 100})
	for n, want := range map[uint64]int64{99: 1, 100: -1} {
		res, _, err := run(t, engines()["compiler"], module, new(tank), "f", n)
		if err != nil || int64(res[0]) != want {
			t.Errorf("table.grow(%d): got %v, %v, want %d", n, res, err, want)
		}
	}
}

func TestRewrite_Deterministic(t *testing.T) {
	raw := loops().Bytes()
	a, b := rewrite(t, raw, meter.Options{}), rewrite(t, bytes.Clone(raw), meter.Options{})
	if !bytes.Equal(a, b) {
		t.Error("two outputs differ")
	}
}

// TestRewrite_DepthIsGivenBack: a call that returned, by whatever way, leaves the depth as it was.
func TestRewrite_DepthIsGivenBack(t *testing.T) {
	w := loops()
	w.fn("ways", oneI, oneI, 0, i64(1), op(0x10, 1, 0x1a), // any call
		op(0x02, 0x40, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0xa7, 0x0e, 2, 0, 1, 2, 0x0b), i64(10), op(0x0f, 0x0b), i64(11), op(0x0c, 1, 0x0b), i64(12))
	ctx := context.Background()
	m := instantiate(t, rewrite(t, w.Bytes(), meter.Options{}), new(tank))
	depth := m.ExportedGlobal(meter.DepthExport)
	got := map[uint64]uint64{}
	for n := range uint64(3) {
		res, err := m.ExportedFunction("ways").Call(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		got[n] = res[0]
		if d := depth.Get(); d != 16_384 {
			t.Errorf("ways(%d): depth is %d after it, want 16384", n, d)
		}
	}
	if want := map[uint64]uint64{0: 10, 1: 11, 2: 12}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	call(t, m, "fib", 12)
	if d := depth.Get(); d != 16_384 {
		t.Errorf("fib: depth is %d after it, want 16384", d)
	}
}

// TestRewrite_Go_MergesData: Go's tens of thousands of segments become few, with the same memory.
func TestRewrite_Go_MergesData(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin for wasip1")
	}
	raw := gsm8k(t)
	module := rewrite(t, raw, meter.Options{ExportGlobals: true})
	info, err := meter.Check(raw, meter.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := wazero.NewRuntimeConfigInterpreter()
	plain := startGuest(t, cfg, raw, raw, nil)
	metered := startGuest(t, cfg, raw, module, new(tank))
	a, _ := plain.mod.Memory().Read(0, plain.mod.Memory().Size())
	b, _ := metered.mod.Memory().Read(0, metered.mod.Memory().Size())
	if !bytes.Equal(a, b) {
		t.Error("the memories differ")
	}
	after, err := meter.Check(bare(t, module), meter.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d data segments become %d; %+v; cost %d ms", info.Segments, after.Segments, info.Largest, info.Cost/1e6)
	if after.Segments > 100 || info.Segments < 1000 {
		t.Errorf("got %d segments of %d, want few of many", after.Segments, info.Segments)
	}
	if !info.Seen.Resettable() || len(info.Globals) == 0 {
		t.Errorf("got %+v and %d globals of a Go guest, want it resettable", info.Seen, len(info.Globals))
	}
}

// TestRewrite_SparseData: single bytes far apart do not become megabytes.
func TestRewrite_SparseData(t *testing.T) {
	w := (&wasm{}).memory(64)
	for i := range 4_000 {
		w.Data = append(w.Data, cat(op(0), i32(int32(i*1024)), op(0x0b, 1, 1)))
	}
	raw := w.Bytes()
	module := rewrite(t, raw, meter.Options{})
	if len(module) > 3*len(raw) {
		t.Errorf("%d bytes become %d", len(raw), len(module))
	}
	m := instantiate(t, module, new(tank))
	for i := range uint32(4_000) {
		if b, ok := m.Memory().Read(i*1024, 2); !ok || b[0] != 1 || b[1] != 0 {
			t.Fatalf("segment %d: got %v", i, b)
		}
	}
}

// bare renames the host's exports, so that a rewritten module can be checked again.
func bare(t *testing.T, b []byte) []byte {
	t.Helper()
	return bytes.ReplaceAll(b, []byte(meter.Prefix), []byte(strings.ToUpper(meter.Prefix)))
}

// TestBake_StartsWhereTheImageWasTaken: an instance of the baked module that got the image answers
// like the one it was taken from, for the same fuel.
func TestBake_StartsWhereTheImageWasTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin for wasip1")
	}
	raw := gsm8k(t)
	module := rewrite(t, raw, meter.Options{ExportGlobals: true})
	info, err := meter.Check(raw, meter.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := wazero.NewRuntimeConfigCompiler()
	first := startGuest(t, cfg, raw, module, new(tank)).open()
	first.ask(abi.OpScore, score())
	mem, _ := first.mod.Memory().Read(0, first.mod.Memory().Size())
	image := bytes.Clone(mem)
	globals := map[string]uint64{meter.FuelExport: 0, meter.DepthExport: 16_384}
	for _, g := range info.Globals {
		globals[g.Name] = first.mod.ExportedGlobal(g.Name).Get()
	}
	start := first.tank.used(first.mod)
	want := first.ask(abi.OpScore, score())
	fuel := first.tank.used(first.mod) - start

	baked, err := meter.Bake(module, image, globals)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		g := startGuest(t, cfg, raw, baked, new(tank))
		if size := g.mod.Memory().Size(); int(size) != len(image) {
			t.Fatalf("got %d bytes of memory, want %d", size, len(image))
		}
		g.mod.Memory().Write(0, image)
		if got, used := g.ask(abi.OpScore, score()), g.tank.used(g.mod); got != want || used != fuel {
			t.Errorf("got %q for %d units, want %q for %d", got, used, want, fuel)
		}
	}
}

func TestBake_Refuses(t *testing.T) {
	plain := func() *wasm { return (&wasm{}).memory(1).fn("f", void, void, 0) }
	start := plain()
	start.Start = u(0)
	drops := (&wasm{}).memory(1).fn("f", void, void, 0, i32(0), i32(0), i32(0), op(0xfc, 8, 0, 0))
	drops.Data = [][]byte{op(1, 0)}
	drops.DataCount = true
	page := make([]byte, 64<<10)
	for name, tc := range map[string]struct {
		w       *wasm
		image   []byte
		globals map[string]uint64
	}{
		"start function": {start, page, nil},
		"half a page":    {plain(), page[:100], nil},
		"no pages":       {plain(), nil, nil},
		"no such global": {plain(), page, map[string]uint64{"x": 1}},
		"memory.init":    {drops, page, nil},
		"no memory":      {(&wasm{}).fn("f", void, void, 0), page, nil},
	} {
		var r *meter.Refusal
		if _, err := meter.Bake(tc.w.Bytes(), tc.image, tc.globals); !errors.As(err, &r) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	if _, err := meter.Bake(plain().Bytes(), page, nil); err != nil {
		t.Errorf("got %v of a plain module", err)
	}
}
