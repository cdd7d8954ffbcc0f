package meter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

// The official tests of core 2.0, as the engine's module carries them.
const (
	specDir = "internal/integration_test/spectest/v2/testdata"
	// specDepth is below the interpreter's own limit of 2,000 frames.
	specDepth  = 1_900
	specModule = "internal/integration_test/spectest/testdata/spectest.wasm"
)

type specFile struct {
	Commands []specCommand `json:"commands"`
}

type specCommand struct {
	Type       string `json:"type"`
	Line       int    `json:"line"`
	Name       string `json:"name"`
	Filename   string `json:"filename"`
	As         string `json:"as"`
	ModuleType string `json:"module_type"`
	Text       string `json:"text"`
	Action     struct {
		Type   string      `json:"type"`
		Field  string      `json:"field"`
		Module string      `json:"module"`
		Args   []specValue `json:"args"`
	} `json:"action"`
}

type specValue struct {
	Type     string `json:"type"`
	LaneType string `json:"lane_type"`
	Value    any    `json:"value"`
}

// bits is a value as the engine takes it.
func (v specValue) bits() []uint64 {
	if lanes, ok := v.Value.([]any); ok {
		width, _ := strconv.Atoi(v.LaneType[1:])
		var out [2]uint64
		for i, l := range lanes {
			out[i*width/64] |= number(l.(string), width) << (i * width % 64)
		}
		return out[:]
	}
	s, _ := v.Value.(string)
	if v.Type == "externref" && s != "null" {
		return []uint64{number(s, 64) + 1} // zero is the null reference
	}
	width := 64
	if strings.HasSuffix(v.Type, "32") {
		width = 32
	}
	return []uint64{number(s, width)}
}

func number(s string, width int) uint64 {
	if s == "" || s == "null" {
		return 0
	}
	if n, err := strconv.ParseUint(s, 10, width); err == nil {
		return n
	}
	n, err := strconv.ParseInt(s, 10, width)
	if err != nil {
		panic(s)
	}
	return uint64(n) & (1<<width - 1)
}

type rewriter func([]byte, meter.Options) ([]byte, error)

// world is one runtime in which a file's commands run, metered or not.
type world struct {
	rt      wazero.Runtime
	tank    tank
	rewrite rewriter // nil = not
	named   map[string]api.Module
	last    api.Module
}

func newWorld(t *testing.T, cfg wazero.RuntimeConfig, rewrite rewriter) *world {
	t.Helper()
	ctx := context.Background()
	w := &world{rt: wazero.NewRuntimeWithConfig(ctx, cfg), rewrite: rewrite, named: map[string]api.Module{}}
	t.Cleanup(func() { _ = w.rt.Close(ctx) })
	w.tank.install(t, w.rt)
	b, err := os.ReadFile(fromWazero(t, specModule))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.rt.Instantiate(ctx, b); err != nil {
		t.Fatal(err)
	}
	return w
}

// errPanic marks what made the engine panic.
var errPanic = errors.New("the engine panicked")

func (w *world) instantiate(b []byte, name string) (m api.Module, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errPanic
		}
	}()
	if w.rewrite != nil {
		if b, err = w.rewrite(b, meter.Options{ExportGlobals: true, MaxTable: 1 << 26, MaxDepth: specDepth}); err != nil {
			return nil, err
		}
	}
	return w.rt.InstantiateWithConfig(context.Background(), b, wazero.NewModuleConfig().WithName(name))
}

// run runs a command; the string is what can be compared.
func (w *world) run(c specCommand, b []byte, as string) (string, error) {
	switch c.Type {
	case "module":
		m, err := w.instantiate(b, as)
		w.last = m
		if c.Name != "" {
			w.named[c.Name] = m
		}
		return "", err
	case "assert_malformed", "assert_invalid", "assert_unlinkable", "assert_uninstantiable":
		_, err := w.instantiate(b, "")
		return "", err
	}
	m := w.last
	if c.Action.Module != "" {
		m = w.named[c.Action.Module]
	}
	if m == nil {
		return "", errors.New("no module")
	}
	if c.Action.Type == "get" {
		return fmt.Sprintf("%x", m.ExportedGlobal(c.Action.Field).Get()), nil
	}
	if w.rewrite != nil {
		// A trap leaves them as they were.
		m.ExportedGlobal(meter.FuelExport).(api.MutableGlobal).Set(1 << 40)
		m.ExportedGlobal(meter.DepthExport).(api.MutableGlobal).Set(specDepth)
	}
	var args []uint64
	for _, v := range c.Action.Args {
		args = append(args, v.bits()...)
	}
	f := m.ExportedFunction(c.Action.Field)
	res, err := f.Call(context.Background(), args...)
	for i, t := range f.Definition().ResultTypes() {
		if err == nil && t == 0x70 {
			res[i] = min(res[i], 1) // a function's address
		}
	}
	return fmt.Sprintf("%x", res), err
}

// fuel is what is left in the module that ran last.
func (w *world) fuel(c specCommand) uint64 {
	m := w.last
	if c.Action.Module != "" {
		m = w.named[c.Action.Module]
	}
	return m.ExportedGlobal(meter.FuelExport).Get()
}

// mustFail says what a command asserts.
func (c specCommand) mustFail() bool {
	switch c.Type {
	case "module", "assert_return", "action", "register":
		return false
	case "assert_uninstantiable":
		// The engine keeps such a module alive on purpose, as linking.wast wants it.
		return c.Text != "out of bounds table access"
	}
	return true
}

// TestRewrite_SpecSuite runs every command metered and unmetered, and wants the assertion to hold
// and both to agree, on values bit by bit and on the kind of trap. What returns must have burnt one
// unit an instruction.
func TestRewrite_SpecSuite(t *testing.T) {
	dir := fromWazero(t, specDir)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for name, cfg := range engines() {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "interpreter" {
				t.Skip("one engine is enough for a short run")
			}
			counts := map[string]int{}
			for _, f := range files {
				specCase(t, cfg, f, counts)
			}
			for _, k := range slices.Sorted(maps.Keys(counts)) {
				t.Logf("%-24s %d", k, counts[k])
			}
			if counts["assert_return"] < 20_000 {
				t.Errorf("got %d assert_return, want the whole suite", counts["assert_return"])
			}
		})
	}
}

func specCase(t *testing.T, cfg wazero.RuntimeConfig, file string, counts map[string]int) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var spec specFile
	if err := json.Unmarshal(raw, &spec); err != nil {
		t.Fatal(err)
	}
	plain, metered, naive := newWorld(t, cfg, nil), newWorld(t, cfg, meter.Rewrite), newWorld(t, cfg, meter.RewriteNaive)
	for i, c := range spec.Commands {
		if c.Type == "register" || c.ModuleType == "text" {
			continue
		}
		var b []byte
		if c.Filename != "" {
			if b, err = os.ReadFile(filepath.Join(filepath.Dir(file), c.Filename)); err != nil {
				t.Fatal(err)
			}
		}
		var as string
		if next := i + 1; next < len(spec.Commands) && spec.Commands[next].Type == "register" {
			as = spec.Commands[next].As
		}
		counts[c.Type]++
		want, wantErr := plain.run(c, b, as)
		got, gotErr := metered.run(c, b, as)
		_, _ = naive.run(c, b, as)
		where := fmt.Sprintf("%s:%d %s %s", filepath.Base(file), c.Line, c.Type, c.Action.Field)
		switch {
		case (gotErr != nil) != c.mustFail():
			t.Errorf("%s: got error %v (unmetered: %v)", where, gotErr, wantErr)
		case got != want:
			t.Errorf("%s: got %s, unmetered %s", where, got, want)
		case c.Type == "assert_exhaustion":
			if !errors.Is(gotErr, errDepth) {
				t.Errorf("%s: got %v, want the depth limit", where, gotErr)
			}
		case c.Type == "assert_trap" && trapOf(gotErr) != trapOf(wantErr):
			t.Errorf("%s: got %v, unmetered %v", where, gotErr, wantErr)
		case c.Type == "assert_return" && c.Action.Type == "invoke":
			if got, want := metered.fuel(c), naive.fuel(c); got != want {
				t.Errorf("%s: got %d units burnt, instruction by instruction %d", where, 1<<40-int64(got), 1<<40-int64(want))
			}
			counts["fuel"]++
		case c.Type == "assert_malformed" || c.Type == "assert_invalid":
			if _, ok := errors.AsType[*meter.Refusal](gotErr); ok {
				counts[c.Type+" by the meter"]++
			}
		}
	}
	_ = plain.rt.Close(context.Background())
	_ = metered.rt.Close(context.Background())
	_ = naive.rt.Close(context.Background())
}

func trapOf(err error) string {
	s, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	return s
}
