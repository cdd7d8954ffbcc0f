package plugin

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

// wasi_snapshot_preview1 with nothing in it but what a grant adds: a clock and randomness of the
// world's own, a log, environment variables and read-only folders that were granted. All state is in
// world, so that putting a world back puts everything back.
//
// https://github.com/WebAssembly/WASI/blob/snapshot-01/phases/snapshot/docs.md

// errno is a WASI status.
type errno uint32

const (
	success       errno = 0
	errBadf       errno = 8
	errFault      errno = 21
	errInval      errno = 28
	errIO         errno = 29
	errIsdir      errno = 31
	errMfile      errno = 33
	errNametoo    errno = 37
	errNoent      errno = 44
	errNosys      errno = 52
	errNotdir     errno = 54
	errNotsock    errno = 57
	errNotsup     errno = 58
	errPerm       errno = 63
	errRofs       errno = 69
	errSpipe      errno = 70
	errNotcapable errno = 76
)

// wasiFunc is one function. The table is total: a module that imports another name is refused.
type wasiFunc struct {
	name string
	// params has a letter for each parameter, i for i32 and I for i64. The result is an errno, of
	// proc_exit none.
	params string
	run    func(ctx context.Context, c *call, a wasiArgs) errno
}

func wasiFuncs() []wasiFunc {
	return []wasiFunc{
		{"args_get", "ii", nothing},
		{"args_sizes_get", "ii", argsSizes},
		{"environ_get", "ii", environGet},
		{"environ_sizes_get", "ii", environSizes},
		{"clock_res_get", "ii", clockRes},
		{"clock_time_get", "iIi", clockTime},
		{"fd_advise", "iIIi", onFile(nothing)},
		{"fd_allocate", "iII", onFile(readOnly)},
		{"fd_close", "i", fdClose},
		{"fd_datasync", "i", onFile(nothing)},
		{"fd_fdstat_get", "ii", fdstatGet},
		{"fd_fdstat_set_flags", "ii", fdstatSetFlags},
		{"fd_fdstat_set_rights", "iII", onFile(nothing)},
		{"fd_filestat_get", "ii", fdFilestat},
		{"fd_filestat_set_size", "iI", onFile(readOnly)},
		{"fd_filestat_set_times", "iIIi", onFile(readOnly)},
		{"fd_pread", "iiiIi", fdPread},
		{"fd_prestat_get", "ii", prestatGet},
		{"fd_prestat_dir_name", "iii", prestatDirName},
		{"fd_pwrite", "iiiIi", onFile(readOnly)},
		{"fd_read", "iiii", fdRead},
		{"fd_readdir", "iiiIi", fdReaddir},
		{"fd_renumber", "ii", fdRenumber},
		{"fd_seek", "iIii", fdSeek},
		{"fd_sync", "i", onFile(nothing)},
		{"fd_tell", "ii", fdTell},
		{"fd_write", "iiii", fdWrite},
		{"path_create_directory", "iii", onFile(readOnly)},
		{"path_filestat_get", "iiiii", pathFilestat},
		{"path_filestat_set_times", "iiiiIIi", onFile(readOnly)},
		{"path_link", "iiiiiii", onFile(readOnly)},
		{"path_open", "iiiiiIIii", pathOpen},
		{"path_readlink", "iiiiii", onFile(notCapable)},
		{"path_remove_directory", "iii", onFile(readOnly)},
		{"path_rename", "iiiiii", onFile(readOnly)},
		{"path_symlink", "iiiii", onThird(readOnly)},
		{"path_unlink_file", "iii", onFile(readOnly)},
		{"poll_oneoff", "iiii", pollOneoff},
		{"proc_exit", "i", procExit},
		{"proc_raise", "i", noSystem},
		{"random_get", "ii", randomGet},
		{"sched_yield", "", nothing},
		{"sock_accept", "iii", onFile(noSocket)},
		{"sock_recv", "iiiiii", onFile(noSocket)},
		{"sock_send", "iiiii", onFile(noSocket)},
		{"sock_shutdown", "ii", onFile(noSocket)},
	}
}

// findWASI looks a name up in the table.
func findWASI(name string) *wasiFunc {
	table := wasiFuncs()
	i := slices.IndexFunc(table, func(f wasiFunc) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &table[i]
}

func (f *wasiFunc) signature() signature {
	s := signature{results: []meter.ValType{meter.I32}}
	for _, p := range f.params {
		if p == 'I' {
			s.params = append(s.params, meter.I64)
		} else {
			s.params = append(s.params, meter.I32)
		}
	}
	if f.name == "proc_exit" {
		s.results = nil
	}
	return s
}

// engineTypes is a list of types in the engine's terms: both number them as the format does.
func engineTypes(types []meter.ValType) []api.ValueType {
	out := make([]api.ValueType, len(types))
	for i, t := range types {
		out[i] = api.ValueType(t)
	}
	return out
}

func (f *wasiFunc) invoke(ctx context.Context, mod api.Module, stack []uint64) {
	c := callOf(ctx)
	c.burn(ctx, hostCall)
	status := f.run(ctx, c, wasiArgs{args{f.name, mod.Memory(), stack}, c.in.world})
	if len(stack) > 0 {
		stack[0] = uint64(status)
	}
}

// instantiateWASI puts the table into a runtime.
func instantiateWASI(ctx context.Context, rt wazero.Runtime) error {
	b := rt.NewHostModuleBuilder(wasi)
	for _, f := range wasiFuncs() {
		s := f.signature()
		b.NewFunctionBuilder().
			WithGoModuleFunction(api.GoModuleFunc(f.invoke), engineTypes(s.params), engineTypes(s.results)).
			Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// wasiArgs are a WASI function's arguments and the world that it sees. Ranges outside of the memory
// are EFAULT.
type wasiArgs struct {
	args
	w *world
}

func (a wasiArgs) u64(i int) uint64 { return a.stack[i] }

// view is the range of n bytes at argument i.
func (a wasiArgs) view(i int, n uint32) ([]byte, bool) { return a.mem.Read(a.u32(i), n) }

func (a wasiArgs) putU32(i int, v uint32) errno {
	if !a.mem.WriteUint32Le(a.u32(i), v) {
		return errFault
	}
	return success
}

func (a wasiArgs) putU64(i int, v uint64) errno {
	if !a.mem.WriteUint64Le(a.u32(i), v) {
		return errFault
	}
	return success
}

// maxVectors bounds the ranges of one read or write, maxTransfer their bytes: the guest asks again.
const (
	maxVectors  = 1024
	maxTransfer = 1 << 20
)

// vectors are the ranges listed at arguments i and i+1.
func (a wasiArgs) vectors(i int) ([][]byte, errno) {
	n := a.u32(i + 1)
	if n > maxVectors {
		return nil, errInval
	}
	list, ok := a.view(i, n*8)
	if !ok {
		return nil, errFault
	}
	out := make([][]byte, 0, n)
	room := uint32(maxTransfer)
	for ; len(list) > 0; list = list[8:] {
		size := binary.LittleEndian.Uint32(list[4:])
		b, ok := a.mem.Read(binary.LittleEndian.Uint32(list), size)
		if !ok {
			return nil, errFault
		}
		if size > room {
			b = b[:room]
		}
		room -= uint32(len(b))
		out = append(out, b)
	}
	return out, success
}

func nothing(context.Context, *call, wasiArgs) errno    { return success }
func readOnly(context.Context, *call, wasiArgs) errno   { return errRofs }
func notCapable(context.Context, *call, wasiArgs) errno { return errNotcapable }
func noSocket(context.Context, *call, wasiArgs) errno   { return errNotsock }
func noSystem(context.Context, *call, wasiArgs) errno   { return errNosys }

// onFile is f for descriptors that are open.
func onFile(f func(context.Context, *call, wasiArgs) errno) func(context.Context, *call, wasiArgs) errno {
	return onArgument(0, f)
}

// onThird is onFile where the descriptor is the third argument.
func onThird(f func(context.Context, *call, wasiArgs) errno) func(context.Context, *call, wasiArgs) errno {
	return onArgument(2, f)
}

func onArgument(i int, f func(context.Context, *call, wasiArgs) errno) func(context.Context, *call, wasiArgs) errno {
	return func(ctx context.Context, c *call, a wasiArgs) errno {
		if a.w.fds.get(a.u32(i)) == nil {
			return errBadf
		}
		return f(ctx, c, a)
	}
}

func argsSizes(_ context.Context, _ *call, a wasiArgs) errno {
	if e := a.putU32(0, 0); e != success {
		return e
	}
	return a.putU32(1, 0)
}

func environSizes(_ context.Context, _ *call, a wasiArgs) errno {
	total := 0
	for _, v := range a.w.environ {
		total += len(v) + 1
	}
	if e := a.putU32(0, uint32(len(a.w.environ))); e != success {
		return e
	}
	return a.putU32(1, uint32(total))
}

func environGet(_ context.Context, _ *call, a wasiArgs) errno {
	at, list := a.u32(1), a.u32(0)
	for i, v := range a.w.environ {
		if !a.mem.WriteUint32Le(list+uint32(i)*4, at) || !a.mem.WriteString(at, v+"\x00") {
			return errFault
		}
		at += uint32(len(v)) + 1
	}
	return success
}

// procExit ends the call, whatever the code: a plugin is no command.
func procExit(_ context.Context, _ *call, a wasiArgs) errno {
	panic(sys.NewExitError(a.u32(0)))
}

func randomGet(ctx context.Context, c *call, a wasiArgs) errno {
	b, ok := a.view(0, a.u32(1))
	if !ok {
		return errFault
	}
	c.burn(ctx, int64(len(b))) // a byte takes about as long as an instruction
	for len(b) > 0 {
		n := min(len(b), maxTransfer)
		if _, err := a.w.Read(b[:n]); err != nil {
			return errIO
		}
		b = b[n:]
		c.look(ctx)
	}
	return success
}

// fdWrite is the log for descriptors 1 and 2; nothing else can be written to.
func fdWrite(ctx context.Context, c *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	switch {
	case f == nil:
		return errBadf
	case f.kind != kindOutput:
		return errRofs
	}
	vs, e := a.vectors(1)
	if e != success {
		return e
	}
	n := 0
	for _, v := range vs {
		c.burn(ctx, int64(len(v)/hostByte))
		_, _ = a.w.stderr.Write(v)
		n += len(v)
	}
	return a.putU32(3, uint32(n))
}

func (e errno) String() string { return fmt.Sprintf("errno %d", uint32(e)) }
