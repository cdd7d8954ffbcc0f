package plugin

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sync/semaphore"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

// Options are an engine's settings; the zero value works.
type Options struct {
	// CacheDir holds compiled and built modules; "" is wevalr's folder in the user's cache folder.
	// It must belong to this user with mode 0700.
	CacheDir string
	// InstanceBytes bounds the memory of instances that drive rollouts, parked ones included, and
	// apart from that the memory of idle instances. 0 = 1 GiB.
	InstanceBytes int64
	// Logger gets the plugins' messages too; nil = discard.
	Logger *slog.Logger
	// HostVersion is what guests are told.
	HostVersion string
}

// Engine compiles modules and holds what plugins share: compiled code, cores and the byte budget.
// Safe for concurrent use.
type Engine struct {
	opt     Options
	log     *slog.Logger
	cache   wazero.CompilationCache
	builder *Builder
	cores   *semaphore.Weighted // guest code running; released while parked
	bytes   *semaphore.Weighted // instances of rollouts
	idle    atomic.Int64        // bytes of idle instances of all plugins
	slabs   slabs
	nCores  int
}

// NewEngine makes an engine and its cache folders.
func NewEngine(opt Options) (*Engine, error) {
	if opt.CacheDir == "" {
		dir, err := defaultCacheDir()
		if err != nil {
			return nil, err
		}
		opt.CacheDir = dir
	}
	if opt.InstanceBytes <= 0 {
		opt.InstanceBytes = 1 << 30
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	code := filepath.Join(opt.CacheDir, "code")
	for _, dir := range []string{opt.CacheDir, code} {
		if err := privateDir(dir); err != nil {
			return nil, err
		}
	}
	cache, err := wazero.NewCompilationCacheWithDir(code)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	n := max(runtime.GOMAXPROCS(0), 1)
	e := &Engine{
		opt: opt, log: opt.Logger, cache: cache, nCores: n,
		builder: &Builder{CacheDir: opt.CacheDir},
		cores:   semaphore.NewWeighted(int64(n)),
		bytes:   semaphore.NewWeighted(opt.InstanceBytes),
	}
	e.slabs = slabs{cores: n, idle: &e.idle, most: opt.InstanceBytes}
	return e, nil
}

// Close frees compiled code. Plugins must have been closed before.
func (e *Engine) Close(ctx context.Context) error {
	e.slabs.close()
	if err := e.cache.Close(ctx); err != nil {
		return fmt.Errorf("engine: close: %w", err)
	}
	return nil
}

// CacheDir is the folder in use.
func (e *Engine) CacheDir() string { return e.opt.CacheDir }

// newRuntime makes an engine of one plugin. Guest code is stopped by the meter, which costs a tenth of
// what the engine's own check does and stops recursion, too.
func (e *Engine) newRuntime(ctx context.Context, config wazero.RuntimeConfig, memoryMiB int) wazero.Runtime {
	return wazero.NewRuntimeWithConfig(ctx, config.
		WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(uint32(memoryMiB)*(1<<20/pageSize)))
}

// compile never panics: some malformed modules make the engine do so.
func (e *Engine) compile(ctx context.Context, rt wazero.Runtime, b []byte, largest meter.Largest) (m wazero.CompiledModule, err error) {
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("the compiler panicked: %v", r)
		}
	}()
	return rt.CompileModule(experimental.WithCompilationWorkers(ctx, compilers(e.nCores, largest)), b)
}

// compileRoom is how many bytes the compiler may hold: a function that is allowed takes it whole.
const compileRoom = 2 << 30

// compilers is how many functions may be compiled at a time, on so many cores. The compiler holds up to half a
// byte for each nanosecond of a function's estimated cost (measured on modules that have much of one thing).
func compilers(cores int, largest meter.Largest) int {
	return int(min(uint64(cores), max(compileRoom/(largest.Cost/2+1), 1)))
}

// readModule reads a file of at most maxModule bytes.
func readModule(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAtMost(f, maxModule)
}
