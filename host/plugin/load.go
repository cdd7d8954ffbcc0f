package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wevalr/wevalr/host/plugin/meter"
	"github.com/wevalr/wevalr/plugins/abi"
)

// Spec names a plugin and what it may do.
type Spec struct {
	// Alias is its name in this run; "" = the manifest's.
	Alias string
	// Source is a .wasm file or a folder with plugin.toml and a Go package.
	Source  string
	Digest  string // sha256 that the module must have; "" = any
	Grants  Grants
	Options map[string]any
	Limits  Limits
	// Mask hides secrets in a guest's text; nil = none.
	Mask func(string) string
}

// Limits are the operator's caps; zero fields mean the default. What counts is the smaller of the
// manifest's wish (or the default) and the cap.
type Limits struct {
	MemoryMiB int           // default 64, wishes up to 256
	Fuel      uint64        // instructions of a scoring call, other calls get 15 times that; default 2 G, wishes up to 20 G
	ScoreWall time.Duration // time on core of a scoring call; default 8 s for 2 G of fuel
	CallWall  time.Duration // of init, a page of tasks, a rollout without its waits; default 120 s for 2 G
}

// Time limits are a backstop at four times what the fuel takes on a slow core: which comes first must
// not depend on the machine.
const (
	defaultMemoryMiB = 64
	memoryCapMiB     = 256
	defaultScoreWall = 4 * 2 * time.Second
	defaultCallWall  = callFuel * defaultScoreWall
)

func (l Limits) resolve(m *ManifestLimits) Limits {
	want := m.MemoryMiB
	if want == 0 {
		want = defaultMemoryMiB
	}
	if l.MemoryMiB <= 0 {
		l.MemoryMiB = memoryCapMiB
	}
	l.MemoryMiB = min(want, l.MemoryMiB, 4095) // of exactly 4 GiB the engine says that it is 0
	fuel, _ := ParseFuel(m.Fuel)
	if fuel == 0 {
		fuel = defaultFuel
	}
	if l.Fuel == 0 {
		l.Fuel = fuelCap
	}
	l.Fuel = min(fuel, l.Fuel, math.MaxInt64/(2*callFuel*pageCalls))
	scale := max(int64(l.Fuel/defaultFuel), 1)
	if l.ScoreWall <= 0 {
		l.ScoreWall = time.Duration(scale * int64(defaultScoreWall))
	}
	if l.CallWall <= 0 {
		l.CallWall = time.Duration(scale * int64(defaultCallWall))
	}
	return l
}

// Plugin is a loaded module: checked, granted, with one instance made. Safe for concurrent use.
type Plugin struct {
	engine   *Engine
	log      *slog.Logger
	spec     Spec
	sha256   string
	abi      string
	size     int
	manifest *Manifest
	assets   Assets
	grants   Grants
	options  map[string]any
	limits   Limits
	vars     map[string]string
	trees    map[string]tree
	identity identity
	tasks    *int64

	rt       wazero.Runtime
	compiled wazero.CompiledModule
	info     *meter.Info
	globals  []string // names of the module's own mutable globals in the metered module
	image    *image   // nil: calls start from a new instance that runs _initialize and init
	written  int      // up to where the module's own data fill a new instance's memory
	pool     pool
	weight   atomic.Int64

	mu     sync.Mutex
	closed bool
	active map[*call]context.CancelCauseFunc // in the guest
	users  int                               // of instances, running or not
	unused chan struct{}                     // closed when closed and without users
	freed  sync.Once
}

// Load reads, checks and starts a plugin. A source folder is built first.
//
// # Errors
//
// *BuildError, *ABIError, *ManifestError, *DigestError, *GrantError, *OptionError; for the first
// instance those of a call.
func (e *Engine) Load(ctx context.Context, spec Spec) (*Plugin, error) {
	b, err := e.bytesOf(ctx, spec.Source)
	if err != nil {
		return nil, err
	}
	p, err := e.inspect(spec, b)
	if err != nil {
		return nil, err
	}
	if err := p.bind(ctx); err != nil {
		p.unbind(ctx)
		return nil, err
	}
	if err := p.start(ctx, b); err != nil {
		p.unbind(ctx)
		return nil, err
	}
	return p, nil
}

// bytesOf reads a module, or builds it.
func (e *Engine) bytesOf(ctx context.Context, source string) ([]byte, error) {
	st, err := os.Stat(source)
	if err != nil {
		return nil, &ABIError{File: source, Step: "read", Msg: "cannot be read", Cause: err}
	}
	if st.IsDir() {
		built, err := e.builder.Build(ctx, source)
		if err != nil {
			return nil, err
		}
		return built.Module, nil
	}
	b, err := readModule(source)
	if err != nil {
		return nil, &ABIError{File: source, Step: "read", Msg: "cannot be read", Cause: err}
	}
	return b, nil
}

// inspect does everything that needs neither compiler nor guest code.
func (e *Engine) inspect(spec Spec, b []byte) (*Plugin, error) {
	in, err := Inspect(spec.Source, b)
	if err != nil {
		return nil, err
	}
	m := in.Manifest
	spec.Alias = orElse(spec.Alias, m.Name)
	if spec.Digest != "" && spec.Digest != in.SHA256 {
		return nil, &DigestError{File: spec.Source, Want: spec.Digest, Got: in.SHA256}
	}
	p := &Plugin{
		engine: e, spec: spec, log: e.log.With(slog.String("plugin", spec.Alias)), sha256: in.SHA256, abi: in.ABI,
		size: len(b), manifest: m, assets: in.assets, info: in.info, limits: spec.Limits.resolve(&m.Limits),
		active: map[*call]context.CancelCauseFunc{}, unused: make(chan struct{}),
	}
	if p.grants, err = effective(spec.Alias, &m.Capabilities, spec.Grants); err != nil {
		return nil, err
	}
	if p.options, err = resolveOptions(spec.Alias, m.Options, spec.Options); err != nil {
		return nil, err
	}
	if need := uint64(in.info.MemoryMin) * pageSize; need > uint64(p.limits.MemoryMiB)<<20 {
		return nil, refuse(spec.Source, "memory", "raise limits.memory_mib",
			"starts with %d MiB, its limit is %d MiB", need>>20, p.limits.MemoryMiB)
	}
	for _, g := range p.info.Globals {
		p.globals = append(p.globals, g.Name)
	}
	return p, nil
}

// Inspection is what a module's bytes say without running anything.
type Inspection struct {
	SHA256   string
	ABI      string // "1.0"
	Size     int
	Manifest *Manifest

	assets Assets
	info   *meter.Info
}

// Inspect checks a module's bytes as Load does and runs nothing of it. file names it in errors.
func Inspect(file string, b []byte) (*Inspection, error) {
	sum := sha256.Sum256(b)
	info, err := preflight(file, b)
	if err != nil {
		return nil, err
	}
	custom, err := customSections(b)
	if err != nil {
		return nil, refuse(file, "parse", "build it again: the file is damaged", "%v", err)
	}
	section, there := custom[abi.SectionManifest]
	if !there {
		return nil, refuse(file, "manifest", "build it with: wevalr plugin build", "no custom section %s", abi.SectionManifest)
	}
	m, err := ParseManifest(file, section)
	if err != nil {
		return nil, err
	}
	assets, err := decodeAssets(custom[abi.SectionAssets])
	if err != nil {
		return nil, refuse(file, "assets", "build it with: wevalr plugin build", "section %s: %v", abi.SectionAssets, err)
	}
	if err := checkDeclared(file, info, &m.Capabilities); err != nil {
		return nil, err
	}
	return &Inspection{
		SHA256: hex.EncodeToString(sum[:]), ABI: abiVersion(info), Size: len(b),
		Manifest: m, assets: assets, info: info,
	}, nil
}

// bind opens what is granted.
func (p *Plugin) bind(ctx context.Context) error {
	p.trees = map[string]tree{}
	digests := map[string]string{}
	for _, name := range sortedKeys(p.grants.FS) {
		root, err := os.OpenRoot(p.grants.FS[name])
		if err != nil {
			return p.unreadable(ctx, name, err)
		}
		p.trees[name] = tree{root}
		if digests[name], err = p.trees[name].digest(ctx); err != nil {
			return p.unreadable(ctx, name, err)
		}
	}
	p.vars = map[string]string{}
	for _, name := range p.grants.Vars {
		if v, set := os.LookupEnv(name); set {
			p.vars[name] = v
		}
	}
	p.identity = newIdentity(p, digests)
	return nil
}

// unreadable is why a granted folder cannot be bound.
func (p *Plugin) unreadable(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil || hostTrouble(err) != nil {
		return fmt.Errorf("%s: fs.%s: %w", p.spec.Alias, name, err)
	}
	return &GrantError{Alias: p.spec.Alias, Problems: []GrantProblem{{
		Capability: "fs." + name, Msg: "cannot be read: " + scrub(err.Error()),
	}}}
}

func (p *Plugin) unbind(ctx context.Context) {
	if p.rt != nil {
		_ = p.rt.Close(ctx)
	}
	for _, t := range p.trees {
		_ = t.root.Close()
	}
}

// start meters, compiles, links, makes the first instance and takes the image that calls start from.
func (p *Plugin) start(ctx context.Context, b []byte) error {
	if err := p.link(ctx, wazero.NewRuntimeConfig(), b); err != nil {
		return err
	}
	return p.begin(ctx)
}

// begin makes the first instance and takes the image.
func (p *Plugin) begin(ctx context.Context) error {
	if err := acquire(ctx, p.engine.cores, 1); err != nil {
		return err
	}
	defer p.engine.cores.Release(1)
	in, err := p.instantiate(ctx)
	if err != nil {
		return err
	}
	p.written = in.written()
	resp, err := p.initialize(ctx, in)
	if err != nil {
		in.close()
		return err
	}
	if resp.Tasks != nil && *resp.Tasks >= 0 {
		p.tasks = resp.Tasks
	}
	p.observe(in)
	if p.info.Seen.Resettable() {
		p.image = takeImage(in)
	}
	p.pool.put(p.engine, in)
	return nil
}

// link compiles the metered module and gives it its imports.
func (p *Plugin) link(ctx context.Context, config wazero.RuntimeConfig, b []byte) error {
	metered, err := meter.Rewrite(b, meter.Options{ExportGlobals: true, MaxDepth: maxDepth})
	if err != nil {
		return refused(p.spec.Source, err)
	}
	err = p.compile(ctx, config.WithCompilationCache(p.engine.cache), metered)
	if _, ok := errors.AsType[*ABIError](err); !ok {
		return err
	}
	// It may be the cache that fails: a file of it is damaged, or its disk is full.
	_ = p.rt.Close(ctx)
	if err = p.compile(ctx, config, metered); err == nil {
		p.log.WarnContext(ctx, "compiled code cannot be kept: remove the cache folder if this comes again",
			slog.String("folder", p.engine.opt.CacheDir))
	}
	return err
}

// compile makes a runtime with the metered module and its imports.
func (p *Plugin) compile(ctx context.Context, config wazero.RuntimeConfig, metered []byte) (err error) {
	p.rt = p.engine.newRuntime(ctx, config, p.limits.MemoryMiB)
	for name, instantiate := range map[string]func(context.Context, wazero.Runtime) error{
		wasi: instantiateWASI, abi.Module: instantiateHost, "the meter": instantiateMeter,
	} {
		if err := instantiate(ctx, p.rt); err != nil {
			return fmt.Errorf("engine: %s: %w", name, err)
		}
	}
	if p.compiled, err = p.engine.compile(ctx, p.rt, metered, p.info.Largest); err != nil {
		return refuse(p.spec.Source, "compile", "", "%v", err)
	}
	return nil
}
