package meter_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engines are the two that must agree.
func engines() map[string]wazero.RuntimeConfig {
	return map[string]wazero.RuntimeConfig{
		"compiler":    wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2),
		"interpreter": wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2),
	}
}

var (
	errFuel  = errors.New("out of fuel")
	errDepth = errors.New("too deep")
)

// tank is the host's side of the refill import.
type tank struct {
	quantum, budget int64 // 0 = 4 M units, no end
	granted         int64
	clock           func() time.Duration // nil = gaps are not measured
	last            time.Duration        // at the refill before
	gaps            []time.Duration      // between refills
}

func (t *tank) refill(_ context.Context, _ api.Module, stack []uint64) {
	if api.DecodeI32(stack[0]) == meter.ReasonDepth {
		panic(errDepth)
	}
	q := t.quantum
	if q == 0 {
		q = 4_000_000
	}
	if t.budget > 0 {
		q = min(q, t.budget-t.granted)
	}
	if q <= 0 {
		panic(errFuel)
	}
	if t.clock != nil {
		now := t.clock()
		if t.last > 0 {
			t.gaps = append(t.gaps, now-t.last)
		}
		t.last = now
	}
	t.granted += q
	stack[0] = uint64(q)
}

// install gives a runtime the refill import.
func (t *tank) install(tb testing.TB, rt wazero.Runtime) {
	tb.Helper()
	_, err := rt.NewHostModuleBuilder("wevalr:meter").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(t.refill), []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI64}).
		Export("refill").Instantiate(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
}

// used is what an instance has burnt since the tank was made.
func (t *tank) used(m api.Module) int64 {
	return t.granted - int64(m.ExportedGlobal(meter.FuelExport).Get())
}

func rewrite(tb testing.TB, b []byte, opt meter.Options) []byte {
	tb.Helper()
	out, err := meter.Rewrite(b, opt)
	if err != nil {
		tb.Fatalf("Rewrite: %v", err)
	}
	return out
}

// wazeroDir is the engine's module in the module cache; its tests' data lie there.
var wazeroDir = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	return strings.TrimSpace(string(out)), err
})

// fromWazero finds a file or folder of the engine's module.
func fromWazero(tb testing.TB, path string) string {
	tb.Helper()
	dir, err := wazeroDir()
	if err != nil || dir == "" {
		missing(tb, "no module cache: %v", err)
	}
	p := filepath.Join(dir, filepath.FromSlash(path))
	if _, err := os.Stat(p); err != nil {
		missing(tb, "the module cache has no %s", path)
	}
	return p
}

// missing skips, or fails where the data must be there.
func missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("WEVALR_REQUIRE_DATA") == "1" {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

var goGuest = sync.OnceValues(func() ([]byte, error) { return buildGo("gsm8k") })

// buildGo builds a plugin of the project's.
func buildGo(plugin string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "meter")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	out := filepath.Join(dir, "g.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-trimpath", "-o", out, "github.com/wevalr/wevalr/plugins/"+plugin)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.New(string(text))
	}
	return os.ReadFile(out)
}

// gsm8k is a real Go guest.
func gsm8k(tb testing.TB) []byte {
	tb.Helper()
	b, err := goGuest()
	if err != nil {
		tb.Fatalf("build the guest: %v", err)
	}
	return b
}
