package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wevalr/wevalr/host/plugin/meter"
	"github.com/wevalr/wevalr/plugins/abi"
)

// hostImport is one function of wevalr_v1. The table is total: what is not in it does not exist,
// and what needs a capability names it here and nowhere else.
type hostImport struct {
	name   string
	params int // all i32; the result is an i32
	// capability that the manifest must declare; "" = always there.
	capability string
	// ops in which it works; nil = all. Elsewhere it is DENIED.
	ops []abi.Op
	run func(ctx context.Context, c *call, a args) int32
}

// args are an import's arguments and the memory that they point into.
type args struct {
	name  string
	mem   api.Memory
	stack []uint64
}

func (a args) i32(i int) int32  { return api.DecodeI32(a.stack[i]) }
func (a args) u32(i int) uint32 { return api.DecodeU32(a.stack[i]) }

// bytes is a view of the range at arguments i and i+1; a range outside of the memory traps.
func (a args) bytes(i int) []byte {
	b, ok := a.mem.Read(a.u32(i), a.u32(i+1))
	if !ok {
		panic(&pointerError{a.name, a.u32(i), a.u32(i + 1)})
	}
	return b
}

// put writes b to (ptr, cap) at arguments i and i+1 if it fits, and gives its length either way.
func (a args) put(i int, b []byte) int32 {
	dst := a.bytes(i)
	if len(b) <= len(dst) {
		copy(dst, b)
	}
	return int32(len(b))
}

// pointerError traps: the guest passed a range that it does not have.
type pointerError struct {
	fn       string
	ptr, len uint32
}

func (e *pointerError) Error() string {
	return fmt.Sprintf("%s: %d bytes at %d are outside of the memory", e.fn, e.len, e.ptr)
}

var errNoCall = errors.New("import used while no call is active")

// callKey finds the call that an import belongs to.
type callKey struct{}

// callOf is the guest call that ctx is of. There is always one: the host calls guests in no other way.
func callOf(ctx context.Context) *call {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		panic(errNoCall)
	}
	return c
}

// capEnv is the only capability that imports need in v1.
const capEnv = "env"

func hostImports() []hostImport {
	inRollout := []abi.Op{abi.OpRollout}
	return []hostImport{
		{"log_enabled", 1, "", nil, logEnabled},
		{"log", 3, "", nil, logMessage},
		{"fail", 2, "", nil, failText},
		{"asset_len", 2, "", nil, assetLen},
		{"asset_read", 4, "", nil, assetRead},
		{"env_start", 2, capEnv, inRollout, envStart},
		{"env_await", 1, capEnv, inRollout, envAwait},
		{"env_poll", 1, capEnv, inRollout, envPoll},
		{"env_cancel", 1, capEnv, inRollout, envCancel},
		{"env_take", 3, capEnv, inRollout, envTake},
		{"env_close", 1, capEnv, inRollout, envClose},
	}
}

// findImport looks a name up in the table.
func findImport(name string) *hostImport {
	table := hostImports()
	i := slices.IndexFunc(table, func(h hostImport) bool { return h.name == name })
	if i < 0 {
		return nil
	}
	return &table[i]
}

func (h *hostImport) signature() signature {
	return signature{slices.Repeat([]meter.ValType{meter.I32}, h.params), []meter.ValType{meter.I32}}
}

// invoke is what the engine calls. It panics only where the ABI says trap.
func (h *hostImport) invoke(ctx context.Context, mod api.Module, stack []uint64) {
	c := callOf(ctx)
	if !c.active {
		panic(errNoCall)
	}
	c.burn(ctx, hostCall)
	if h.ops != nil && !slices.Contains(h.ops, c.op) || h.capability == capEnv && c.env == nil {
		stack[0] = api.EncodeI32(int32(abi.Denied))
		return
	}
	stack[0] = api.EncodeI32(h.run(ctx, c, args{h.name, mod.Memory(), stack}))
}

// instantiateHost puts the table into a runtime.
func instantiateHost(ctx context.Context, rt wazero.Runtime) error {
	b := rt.NewHostModuleBuilder(abi.Module)
	for _, h := range hostImports() {
		s := h.signature()
		b.NewFunctionBuilder().
			WithGoModuleFunction(api.GoModuleFunc(h.invoke), engineTypes(s.params), engineTypes(s.results)).
			Export(h.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

const (
	logPerCall  = 16 << 10
	maxFailText = 4 << 10
	// maxAssetName is longer than any path in a module's assets can usefully be.
	maxAssetName = 4 << 10
)

// logEnabled does not ask the logger: what a guest computes must not depend on who listens. Every
// message is kept, for the log that goes with an error.
func logEnabled(_ context.Context, _ *call, a args) int32 {
	if _, ok := slogLevel(a.i32(0)); ok {
		return 1
	}
	return 0
}

func logMessage(ctx context.Context, c *call, a args) int32 {
	text := a.bytes(1)
	lvl, ok := slogLevel(a.i32(0))
	if !ok {
		return int32(abi.Invalid)
	}
	c.burn(ctx, int64(min(len(text), logPerCall)/hostByte))
	left := logPerCall - c.logged
	if left <= 0 {
		if !c.logCut {
			c.logCut = true
			c.p.log.WarnContext(ctx, "plugin message truncated", slog.Int("limit_bytes", logPerCall))
		}
		return 0
	}
	// A secret is looked for before the text is cut, which may leave a part of one.
	s := c.p.clean(string(text[:min(len(text), 2*logPerCall)]))
	s = s[:min(len(s), left)]
	c.logged += len(text) + 1 // empty messages are lines too
	_, _ = c.stderr.Write([]byte(s + "\n"))
	c.p.log.LogAttrs(ctx, lvl, "plugin message", slog.String("text", scrub(s)))
	return 0
}

func failText(_ context.Context, c *call, a args) int32 {
	text := a.bytes(0)
	c.panicText = append(c.panicText[:0], text[:min(len(text), 2*maxFailText)]...) // no new memory each time
	return 0
}

// asset finds the asset whose name is at the first two arguments.
func (c *call) asset(a args) ([]byte, bool) {
	name := a.bytes(0)
	if len(name) > maxAssetName {
		return nil, false
	}
	b, ok := c.p.assets[string(name)]
	return b, ok
}

func assetLen(_ context.Context, c *call, a args) int32 {
	b, ok := c.asset(a)
	if !ok {
		return int32(abi.NotFound)
	}
	return int32(len(b))
}

func assetRead(ctx context.Context, c *call, a args) int32 {
	b, ok := c.asset(a)
	if !ok {
		return int32(abi.NotFound)
	}
	c.burn(ctx, int64(len(b)/hostByte))
	return a.put(2, b)
}
