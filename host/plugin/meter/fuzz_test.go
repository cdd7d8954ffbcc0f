package meter_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

// outcome is what happened to a module.
type outcome struct {
	accepted bool
	results  []string // of its exports, called with ones
	fuel     []int64
	ended    bool // by fuel or depth
}

// try compiles, instantiates and calls. rewrite nil = as it is.
func try(cfg wazero.RuntimeConfig, b []byte, rewrite rewriter) (o outcome, err error) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, cfg.WithMemoryLimitPages(256))
	defer func() { _ = rt.Close(ctx) }()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	tank := &tank{quantum: 10_000, budget: 200_000}
	if rewrite != nil {
		if b, err = rewrite(b, meter.Options{MaxDepth: 200}); err != nil {
			return o, err
		}
	}
	_, err = rt.NewHostModuleBuilder("wevalr:meter").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(tank.refill), []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI64}).
		Export("refill").Instantiate(ctx)
	if err != nil {
		return o, err
	}
	compiled, err := rt.CompileModule(ctx, b)
	if err != nil {
		return o, err
	}
	o.accepted = true
	m, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		o.ended = errors.Is(err, errFuel) || errors.Is(err, errDepth)
		return o, err
	}
	defs := compiled.ExportedFunctions()
	names := make([]string, 0, len(defs))
	for n := range defs {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		args := make([]uint64, 0, 8)
		for _, p := range defs[n].ParamTypes() {
			args = append(args, 1)
			if p == 0x7b { // a vector takes two
				args = append(args, 1)
			}
			if p == api.ValueTypeExternref || p == 0x70 {
				args[len(args)-1] = 0
			}
		}
		res, err := m.ExportedFunction(n).Call(ctx, args...)
		for i, t := range defs[n].ResultTypes() {
			if err == nil && (t == 0x70 || t == api.ValueTypeExternref) && i < len(res) {
				res[i] = min(res[i], 1) // an address
			}
		}
		o.results = append(o.results, fmt.Sprintf("%s %x %s", n, res, trapOf(err)))
		if rewrite != nil {
			o.fuel = append(o.fuel, tank.used(m))
		}
		if err != nil {
			// What a trap leaves behind is not compared.
			o.ended = errors.Is(err, errFuel) || errors.Is(err, errDepth)
			return o, nil
		}
	}
	return o, nil
}

// lax says that the engine takes what the specification does not: any byte after the first of a
// vector instruction's number, any byte for the type of an imported table or of a constant null, any unused bits of an
// integer, a data count that is cut short; and the references of proposals that are not in core 2.0.
func lax(err error) bool {
	var r *meter.Refusal
	return errors.As(err, &r) && (r.Rule == "opcode" && strings.HasPrefix(r.Saw, "0xfd") ||
		r.Rule == "reference type" && r.Section != "code" || r.Rule == "value type" && slices.Contains([]string{"type 0x63", "type 0x64", "type 0x69"}, r.Saw) ||
		r.Rule == "integer" || r.Section == "data count")
}

// huge says that somewhere there is what could be read as a count of millions.
func huge(b []byte) bool {
	const limit = 1 << 21
	for i := range b {
		if n, _ := binary.Uvarint(b[i:min(i+5, len(b))]); n >= limit {
			return true
		}
	}
	return false
}

// compare is the property: what the engine accepts is accepted metered, and does the same.
func compare(t *testing.T, b []byte) (tally string) {
	t.Helper()
	if bytes.Contains(b, []byte{0xfc, 15}) {
		// The engine does not bound tables: unmetered, a mutant takes all memory. Metered it is held to
		// MaxTable, where it differs by design (TestRewrite_TableIsClamped).
		return "table.grow"
	}
	_, err := meter.Check(b, meter.Caps{Cost: 300e6})
	var r *meter.Refusal
	if errors.As(err, &r) && r.Rule != "memory count" {
		if r.Limit != "" && r.Remedy != "" {
			return "over a cap"
		}
		if r.Remedy != "" {
			err = nil // policy: metered all the same
		}
	}
	if err != nil && huge(b) {
		return "huge" // the engine makes room for gigabytes before it sees that nothing follows
	}
	if err != nil && r.Rule != "memory count" {
		if o, _ := try(engines()["interpreter"], b, nil); o.accepted && !lax(r) {
			t.Errorf("got %v, but the engine accepts %x", err, b)
		}
		return "malformed"
	}
	tally = "invalid"
	for name, cfg := range engines() {
		metered, err := try(cfg, b, meter.Rewrite)
		if errors.Is(err, errPanic) {
			t.Errorf("%s: %v of %x", name, err, b)
		}
		if metered.ended {
			return "ended"
		}
		// It came to an end by itself, so it will unmetered.
		plain, plainErr := try(cfg, b, nil)
		if plainErr != nil && strings.Contains(plainErr.Error(), "custom") {
			return "bad names" // left out by the meter; the specification ignores them too
		}
		if lax(err) {
			return "lax"
		}
		if plain.accepted != metered.accepted || (err == nil) != (plainErr == nil) {
			t.Errorf("%s: got %v, unmetered %v, of %x", name, err, plainErr, b)
			return tally
		}
		if err != nil {
			continue
		}
		if !slices.Equal(plain.results, metered.results) {
			t.Errorf("%s: got %v, unmetered %v, of %x", name, metered.results, plain.results, b)
		}
		naive, _ := try(cfg, b, meter.RewriteNaive)
		if trapped := strings.Contains(strings.Join(plain.results, " "), "wasm error"); !trapped && !slices.Equal(naive.fuel, metered.fuel) {
			t.Errorf("%s: burnt %d, instruction by instruction %d, of %x", name, metered.fuel, naive.fuel, b)
		}
		tally = "same"
	}
	return tally
}

// seeds are modules by hand, and the spec suite's where the module cache has them.
func seeds(tb testing.TB) [][]byte {
	tb.Helper()
	var out [][]byte
	out = append(out, loops().Bytes(), bulkModule().Bytes())
	files, _ := filepath.Glob(filepath.Join(fromWazero(tb, specDir), "*.wasm"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || len(b) > 8<<10 {
			continue
		}
		// Many are invalid on purpose, or need imports.
		if o, err := try(engines()["interpreter"], b, meter.Rewrite); o.accepted && err == nil {
			out = append(out, b)
		}
	}
	return out
}

// mutate changes some bytes, most of them in code and in place, so that much of the module stays
// valid.
func mutate(rng *rand.Rand, b []byte) []byte {
	b = slices.Clone(b)
	from, to := 8, len(b)
	if code, end, ok := section(b, 10); ok && rng.IntN(10) > 0 {
		from, to = code+2, end
	}
	if to <= from {
		return b
	}
	for range 1 + rng.IntN(2) {
		i := from + rng.IntN(to-from)
		if rng.IntN(4) > 0 {
			alike(rng, b, i, to)
			continue
		}
		switch rng.IntN(12) {
		case 0:
			b[i] = byte(rng.IntN(256))
		case 1:
			b[i] ^= 1 << rng.IntN(8)
		case 2:
			b[i] = b[from+rng.IntN(to-from)]
		case 3, 4:
			b[i]++
		case 5:
			b[i]--
		default: // one instruction for another
			b[i] = []byte{0x00, 0x01, 0x0b, 0x0c, 0x0d, 0x0f, 0x1a, 0x20, 0x21, 0x45, 0x50, 0x6a, 0x7c, 0x02, 0x03, 0x04}[rng.IntN(16)]
		}
	}
	return b
}

// alike puts another instruction of the same type in the place of the first that has one from i on.
func alike(rng *rand.Rand, b []byte, i, to int) {
	plain := [][2]byte{ // first and last opcode
		{0x0c, 0x0d},                                           // br, br_if
		{0x2c, 0x2f},                                           // loads of narrow integers
		{0x46, 0x4f}, {0x51, 0x5a}, {0x5b, 0x60}, {0x61, 0x66}, // comparisons
		{0x67, 0x69}, {0x6a, 0x78}, {0x79, 0x7b}, {0x7c, 0x8a}, // of integers
		{0x8b, 0x91}, {0x92, 0x98}, {0x99, 0x9f}, {0xa0, 0xa6}, // of floats
	}
	vector := [][2]byte{{0x23, 0x40}, {0x41, 0x4c}, {0x4e, 0x51}, {0x6e, 0x73}, {0x8e, 0x93}, {0x95, 0x99}, {0xae, 0xb1}, {0xb5, 0xb9}, {0xe4, 0xeb}, {0xf0, 0xf7}}
	for ; i < to; i++ {
		classes := plain
		if b[i-1] == 0xfd {
			classes = vector
		}
		for _, c := range classes {
			if b[i] >= c[0] && b[i] <= c[1] {
				b[i] = c[0] + byte(rng.IntN(int(c[1]-c[0])+1))
				return
			}
		}
	}
}

// section finds one by its number.
func section(b []byte, id byte) (from, to int, ok bool) {
	for i := 8; i < len(b); {
		n, k := binary.Uvarint(b[i+1:])
		from = i + 1 + k
		if b[i] == id {
			return from, from + int(n), true
		}
		i = from + int(n)
	}
	return 0, 0, false
}

// TestRewrite_Mutants runs the property over mutated modules.
func TestRewrite_Mutants(t *testing.T) {
	n := 6_000
	if testing.Short() {
		n = 300
	}
	from := seeds(t)
	rng := rand.New(rand.NewPCG(1, 2))
	counts := map[string]int{}
	for range n {
		counts[compare(t, mutate(rng, from[rng.IntN(len(from))]))]++
	}
	t.Logf("%d mutants of %d modules: %v", n, len(from), counts)
	if counts["same"] < n/2 {
		t.Errorf("got %v, want more modules that run", counts)
	}
}

// FuzzMutants runs the property over more of the mutants that [TestRewrite_Mutants] makes.
func FuzzMutants(f *testing.F) {
	from := seeds(f)
	f.Add(uint64(3))
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		compare(t, mutate(rng, from[rng.IntN(len(from))]))
	})
}

func FuzzRewrite(f *testing.F) {
	f.Add(loops().Bytes())
	f.Add((&wasm{}).memory(1).table(2).fn("f", oneI, oneI, 2, op(0x02, 0x40, 0x20, 0, 0x50, 0x0d, 0, 0x03, 0x40, 0x20, 0, 0xa7, 0x0e, 2, 0, 1, 0, 0x0b, 0x0b, 0x20, 1)).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) { compare(t, b) })
}
