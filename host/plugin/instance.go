package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wevalr/wevalr/host/plugin/meter"
	"github.com/wevalr/wevalr/plugins/abi"
)

// instance is a running module. One call at a time; after any error it is closed, never used again.
type instance struct {
	p       *Plugin
	mod     api.Module
	gauge   api.MutableGlobal // fuel
	depth   api.MutableGlobal
	globals []api.MutableGlobal // the module's own, in the order of Info.Globals
	slab    *slab
	world   *world
	calls   int
}

// call is one guest call: what imports need to know of it.
type call struct {
	p         *Plugin
	in        *instance
	op        abi.Op
	seed      int64
	limit     time.Duration
	tank      tank
	watch     *stopwatch
	stderr    *ring
	logged    int
	logCut    bool
	panicText []byte
	answered  uint32 // bytes
	// active says that wevalr_call runs: imports of the ABI trap at other times.
	active bool

	// Of a rollout that may use the env; else nil.
	env   *envTable
	start func(raw []byte) int32
	// onCore says that the call holds a place on a core.
	onCore bool
}

// hostError ends a call that the host cannot serve: what the guest would see of it is not in its request, and
// it is not the guest's fault.
type hostError struct{ cause error }

func (e *hostError) Error() string { return e.cause.Error() }

var errDeadline = errors.New("time on core used up")

// callGrace is how much time on core a rollout has left when its caller has given up.
const callGrace = 5 * time.Second

// newCall is a call of op within the plugin's limits.
func (p *Plugin) newCall(op abi.Op, seed int64) *call {
	c := &call{p: p, op: op, seed: seed, limit: p.limits.CallWall}
	c.tank.budget = int64(p.limits.Fuel)
	if op == abi.OpScore || op == abi.OpScoreGroup {
		c.limit = p.limits.ScoreWall
	} else {
		c.tank.budget *= callFuel
	}
	return c
}

// instantiate makes an instance without running any of it.
func (p *Plugin) instantiate(ctx context.Context) (*instance, error) {
	// No name, no start functions: instances are many, and _initialize is a call like others.
	cfg := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	slab, err := p.engine.slabs.get(p.limits.MemoryMiB << 20)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.spec.Alias, err)
	}
	mod, err := p.rt.InstantiateModule(slab.in(ctx), p.compiled, cfg)
	if err != nil {
		slab.Free()
		return nil, &ABIError{File: p.spec.Alias, Step: "instantiate", Msg: scrub(err.Error())}
	}
	in := &instance{p: p, mod: mod, slab: slab, world: newWorld(p.grants, p.vars, p.trees)}
	for _, name := range append([]string{meter.FuelExport, meter.DepthExport}, p.globals...) {
		g, ok := mod.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			in.close()
			return nil, &ABIError{File: p.spec.Alias, Step: "instantiate", Msg: "the metered module has no global " + name}
		}
		in.globals = append(in.globals, g)
	}
	in.gauge, in.depth, in.globals = in.globals[0], in.globals[1], in.globals[2:]
	return in, nil
}

// newInstance makes an instance and initializes it; the core is the caller's.
func (p *Plugin) newInstance(ctx context.Context) (*instance, error) {
	in, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := p.initialize(ctx, in); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// initialize runs _initialize and init of a new instance, which is none to use after an error.
func (p *Plugin) initialize(ctx context.Context, in *instance) (abi.InitResponse, error) {
	var resp abi.InitResponse
	if f := in.mod.ExportedFunction(abi.ExportInitialize); f != nil {
		if _, err := in.guarded(ctx, p.newCall(abi.OpInit, 0), func(gctx context.Context) error {
			_, err := f.Call(gctx)
			return err
		}); err != nil {
			return resp, err
		}
	}
	if _, err := p.ask(ctx, in, p.newCall(abi.OpInit, 0), abi.InitRequest{Options: p.options, Host: p.host()}, &resp); err != nil {
		return resp, err
	}
	in.world.initialized()
	return resp, nil
}

func (in *instance) size() uint32 { return in.mod.Memory().Size() }

// weight is about what an instance needs of the host's memory, in bytes, and held what it takes: its memory may
// have been another's, who needed more.
func (in *instance) weight() int64 { return int64(in.slab.top) + 1<<20 }
func (in *instance) held() int64   { return int64(in.slab.had) + 1<<20 }

// close must not run while a call is in the guest.
func (in *instance) close() {
	_ = in.mod.Close(context.Background())
	in.world.fds.close()
}

// guarded runs f with everything that bounds guest code, and types its error. A rollout outlives its
// caller's ctx by callGrace at most; other calls end with it.
func (in *instance) guarded(ctx context.Context, c *call, f func(context.Context) error) (time.Duration, error) {
	gctx, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), callKey{}, c))
	defer cancel(nil)
	if err := in.p.enter(c, cancel); err != nil {
		return 0, err
	}
	defer in.p.leave(c)
	c.in, c.stderr, c.tank.gauge = in, &in.world.stderr, in.gauge
	in.world.begin(c.op, c.seed)
	// What a call before has left of them is not this call's: traps leave both unbalanced.
	in.gauge.Set(0)
	in.depth.Set(maxDepth)
	c.watch = newStopwatch(c.limit, func() { cancel(errDeadline) })
	stop := context.AfterFunc(ctx, func() {
		if c.env != nil {
			c.watch.shorten(callGrace)
			return
		}
		cancel(context.Cause(ctx))
	})
	err := f(gctx)
	stop()
	took := c.watch.stop()
	if cause := context.Cause(gctx); cause != nil {
		if c.env != nil && ctx.Err() != nil && errors.Is(cause, errDeadline) {
			cause = context.Cause(ctx) // whose grace it was
		}
		// The engine may or may not have seen the end in time: a result that came with it is not
		// one to rely on.
		return took, in.ended(c, cause)
	}
	if err == nil && c.tank.used() > uint64(c.tank.budget) {
		err = errFuel // what it burnt since the meter's last look is too much
	}
	if err != nil {
		return took, in.typed(c, err)
	}
	return took, nil
}

// ended types the end of a call that the host stopped.
func (in *instance) ended(c *call, cause error) error {
	if errors.Is(cause, errDeadline) {
		return &LimitError{
			Alias: in.p.spec.Alias, Op: opName(c.op), Kind: "deadline",
			Limit: c.limit.String() + " on a core", Log: in.p.tail(c.stderr),
		}
	}
	return fmt.Errorf("%s: %s: %w", in.p.spec.Alias, opName(c.op), cause)
}

// typed types the end of a call that the guest caused.
func (in *instance) typed(c *call, err error) error {
	if _, ok := errors.AsType[*ResponseError](err); ok {
		return err
	}
	if host, ok := errors.AsType[*hostError](err); ok {
		return fmt.Errorf("%s: %s: %w", in.p.spec.Alias, opName(c.op), host.cause)
	}
	if errors.Is(err, errFuel) {
		return &LimitError{
			Alias: in.p.spec.Alias, Op: opName(c.op), Kind: "fuel",
			Limit: FormatFuel(uint64(c.tank.budget)) + " instructions", Log: in.p.tail(c.stderr),
		}
	}
	e := &TrapError{
		Alias: in.p.spec.Alias, Op: opName(c.op), Kind: "trap",
		Panic: cut(in.p.clean(string(c.panicText)), maxFailText), Log: in.p.tail(c.stderr),
	}
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		e.Kind, e.Code = "exit", exit.ExitCode()
		e.Msg = fmt.Sprintf("the guest called proc_exit(%d) in the middle of a call", e.Code)
		return e
	}
	if errors.Is(err, errDepth) {
		e.Msg = errDepth.Error()
		return e
	}
	if in.outOfMemory(c) {
		return &LimitError{
			Alias: e.Alias, Op: e.Op, Kind: "memory",
			Limit: fmt.Sprintf("%d MiB", in.p.limits.MemoryMiB), Log: e.Log,
		}
	}
	msg, stack, _ := strings.Cut(scrub(err.Error()), "\n")
	e.Msg, e.Stack = strings.TrimSuffix(msg, " (recovered by wazero)"), stack
	return e
}

// outOfMemory guesses whether a trap is the guest's way to say that memory.grow failed: the Go
// runtime writes so, others trap with their memory almost full.
func (in *instance) outOfMemory(c *call) bool {
	if strings.Contains(string(c.stderr.buf), "out of memory") || string(c.panicText) == "out of memory" {
		return true
	}
	limit := uint64(in.p.limits.MemoryMiB) << 20
	return uint64(in.size()) >= limit-limit/16
}

// exchange writes a request and copies the response out. All of it is bounds-checked.
func (in *instance) exchange(ctx context.Context, c *call, req []byte) ([]byte, error) {
	bad := func(format string, args ...any) error {
		return &ResponseError{Alias: in.p.spec.Alias, Op: opName(c.op), Msg: fmt.Sprintf(format, args...)}
	}
	if len(req) > abi.MaxRequest {
		return nil, bad("the request is over %d MiB", abi.MaxRequest>>20)
	}
	c.active = true
	// A function keeps its stack as large as calls have made it, and how deep the next can recurse depends on that.
	buf, call := in.mod.ExportedFunction(abi.ExportBuf), in.mod.ExportedFunction(abi.ExportCall)
	res, err := buf.Call(ctx, uint64(len(req)))
	if err != nil {
		return nil, err
	}
	ptr := uint32(res[0])
	if ptr == 0 {
		return nil, bad("%s has no room for a request of %d bytes", abi.ExportBuf, len(req))
	}
	if !in.mod.Memory().Write(ptr, req) {
		return nil, bad("%s gave %d bytes at %d, outside of the memory", abi.ExportBuf, len(req), ptr)
	}
	res, err = call.Call(ctx, uint64(c.op), uint64(len(req)))
	if err != nil {
		return nil, err
	}
	ptr, n := uint32(res[0]>>32), uint32(res[0])
	c.answered = n
	switch {
	case n == 0:
		return nil, bad("empty")
	case n > maxResponse(c.op):
		return nil, bad("%d bytes, over the limit of %d MiB", n, maxResponse(c.op)>>20)
	}
	view, ok := in.mod.Memory().Read(ptr, n)
	if !ok {
		return nil, bad("%d bytes at %d are outside of the memory", n, ptr)
	}
	return append([]byte(nil), view...), nil
}

// maxResponse is how many bytes op may answer with.
func maxResponse(op abi.Op) uint32 {
	if op == abi.OpTasks {
		return abi.MaxTasksResponse
	}
	return abi.MaxResponse
}

// ask makes one call: encode, exchange, decode. resp is filled from ok; err becomes a GuestError.
func (p *Plugin) ask(ctx context.Context, in *instance, c *call, req, resp any) (time.Duration, error) {
	enc := p.manifest.Encoding
	raw, err := encode(enc, req)
	if err != nil {
		return 0, &ResponseError{Alias: p.spec.Alias, Op: opName(c.op), Msg: "the request cannot be encoded", Cause: err}
	}
	in.calls++
	var out []byte
	took, err := in.guarded(ctx, c, func(gctx context.Context) error {
		var err error
		out, err = in.exchange(gctx, c, raw)
		return err
	})
	if err != nil {
		return took, err
	}
	e, err := decodeEnvelope(enc, out)
	if err == nil && e.err == nil {
		err = decode(enc, e.ok, resp)
	}
	if err != nil {
		return took, &ResponseError{Alias: p.spec.Alias, Op: opName(c.op), Msg: "cannot be decoded", Cause: err}
	}
	if e.err != nil {
		return took, p.guestError(c.op, e.err)
	}
	return took, nil
}

// What a guest's own error may bring into the journal.
const (
	maxErrorText = 4 << 10
	maxErrorData = 64 << 10
)

func (p *Plugin) guestError(op abi.Op, e *abi.Error) error {
	if plainMap(e.Data) != nil {
		e.Data = nil
	} else if b, err := json.Marshal(e.Data); err != nil || len(b) > maxErrorData {
		e.Data = nil
	}
	return &GuestError{
		Alias: p.spec.Alias, Op: opName(op), Code: orElse(cut(p.clean(e.Code), 100), "error"),
		Message: cut(p.clean(e.Message), maxErrorText), Retryable: e.Retryable, Data: e.Data,
	}
}

func opName(op abi.Op) string {
	switch op {
	case abi.OpInit:
		return "init"
	case abi.OpTasks:
		return "tasks"
	case abi.OpRollout:
		return "rollout"
	case abi.OpScore:
		return "score"
	case abi.OpScoreGroup:
		return "score_group"
	}
	return fmt.Sprintf("op %d", op)
}
