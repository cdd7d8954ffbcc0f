package plugin

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

func (a wasiArgs) path(i int) ([]byte, errno) {
	b, ok := a.view(i, a.u32(i+1))
	if !ok {
		return nil, errFault
	}
	return b, success
}

// Flags of path_open.
const (
	openCreate    = 1
	openDirectory = 2
	openExclusive = 4
	openTruncate  = 8
	followLinks   = 1
	rightWrite    = 1 << 6
)

func pathOpen(ctx context.Context, c *call, a wasiArgs) errno {
	p, e := a.path(2)
	if e != success {
		return e
	}
	tr, dir, name, e := a.w.fds.locate(a.u32(0), p)
	if e != success {
		return e
	}
	oflags := a.u32(4)
	if oflags&(openCreate|openExclusive|openTruncate) != 0 {
		return errRofs
	}
	if len(a.w.fds.open) >= maxFDs {
		return errMfile
	}
	c.walk(ctx, name)
	file, err := tr.Open(name)
	if err != nil {
		return statusOfFile(err)
	}
	st, err := file.Stat()
	f := &descriptor{kind: kindFile, mount: dir.mount, name: name, flags: uint16(a.u32(7)), file: file}
	switch {
	case err != nil:
		f.close()
		return statusOfOpen(err)
	case st.IsDir():
		f.kind = kindFolder
	case oflags&openDirectory != 0:
		e = errNotdir
	case a.u64(5)&rightWrite != 0:
		e = errRofs
	}
	if e != success || f.kind == kindFolder {
		f.close() // a folder is listed when it is read
		f.file = nil
	}
	if e != success {
		return e
	}
	fd := a.w.fds.free()
	a.w.fds.open[fd] = f
	return a.putU32(8, fd)
}

func fdClose(_ context.Context, _ *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	if f == nil {
		return errBadf
	}
	f.close()
	delete(a.w.fds.open, a.u32(0))
	return success
}

func fdRenumber(_ context.Context, _ *call, a wasiArgs) errno {
	from, to := a.w.fds.get(a.u32(0)), a.w.fds.get(a.u32(1))
	switch {
	case from == nil || to == nil:
		return errBadf
	case from == to:
		return success
	case from.root || to.root:
		return errNotsup
	}
	to.close()
	delete(a.w.fds.open, a.u32(0))
	a.w.fds.open[a.u32(1)] = from
	return success
}

// folderPath is where a granted folder stands for guests.
func folderPath(name string) string { return path.Join("/data", name) }

func prestatGet(_ context.Context, _ *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	if f == nil || !f.root {
		return errBadf
	}
	return a.putU64(1, uint64(len(folderPath(f.mount)))<<32) // tag 0: a folder
}

func prestatDirName(_ context.Context, _ *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	if f == nil || !f.root {
		return errBadf
	}
	name := folderPath(f.mount)
	b, ok := a.view(1, a.u32(2))
	switch {
	case !ok:
		return errFault
	case len(b) < len(name):
		return errNametoo
	}
	copy(b, name)
	return success
}

// readAt reads into the ranges at arguments 1 and 2.
func (a wasiArgs) readAt(ctx context.Context, c *call, f *descriptor, pos int64) (int, errno) {
	vs, e := a.vectors(1)
	if e != success {
		return 0, e
	}
	r, ok := f.file.(io.ReaderAt)
	if !ok || pos < 0 {
		return 0, errInval
	}
	n := 0
	for _, v := range vs {
		c.burn(ctx, fileCall+int64(len(v)/hostByte))
		k, err := r.ReadAt(v, pos+int64(n))
		n += k
		if err != nil && !errors.Is(err, io.EOF) {
			return n, statusOfOpen(err)
		}
		if k < len(v) {
			break
		}
	}
	return n, success
}

// readable is the file of argument 0; its descriptor is nil where reading ends at once.
func (a wasiArgs) readable() (*descriptor, errno) {
	f := a.w.fds.get(a.u32(0))
	switch {
	case f == nil || f.kind == kindOutput:
		return nil, errBadf
	case f.kind == kindFolder:
		return nil, errIsdir
	case f.kind == kindInput:
		return nil, success
	}
	return f, success
}

func fdRead(ctx context.Context, c *call, a wasiArgs) errno {
	f, e := a.readable()
	if e != success {
		return e
	}
	n := 0
	if f != nil {
		if n, e = a.readAt(ctx, c, f, f.pos); e != success {
			return e
		}
		f.pos += int64(n)
	}
	return a.putU32(3, uint32(n))
}

func fdPread(ctx context.Context, c *call, a wasiArgs) errno {
	f, e := a.readable()
	switch {
	case e != success:
		return e
	case f == nil:
		return errSpipe
	}
	n, e := a.readAt(ctx, c, f, int64(a.u64(3)))
	if e != success {
		return e
	}
	return a.putU32(4, uint32(n))
}

func fdSeek(ctx context.Context, c *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	switch {
	case f == nil:
		return errBadf
	case f.kind == kindFolder:
		return errIsdir
	case f.kind != kindFile:
		return errSpipe
	}
	base := int64(0)
	switch a.u32(2) {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.pos
	case io.SeekEnd:
		c.burn(ctx, fileCall)
		st, err := f.file.Stat()
		if err != nil {
			return statusOfOpen(err)
		}
		base = st.Size()
	default:
		return errInval
	}
	pos := base + int64(a.u64(1))
	if pos < 0 {
		return errInval
	}
	f.pos = pos
	return a.putU64(3, uint64(pos))
}

func fdTell(_ context.Context, _ *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	switch {
	case f == nil:
		return errBadf
	case f.kind != kindFile:
		return errSpipe
	}
	return a.putU64(1, uint64(f.pos))
}

const sizeDirent = 24

// fdReaddir lists a folder in the order of names. An entry that does not fit is cut: the guest sees
// that the buffer is full and asks again.
func fdReaddir(ctx context.Context, c *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	switch {
	case f == nil:
		return errBadf
	case f.kind != kindFolder:
		return errNotdir
	}
	buf, ok := a.view(1, a.u32(2))
	if !ok {
		return errFault
	}
	if f.entries == nil || a.u64(3) == 0 {
		c.walk(ctx, f.name)
		list, err := fs.ReadDir(a.w.fds.trees[f.mount], f.name)
		if err != nil {
			return statusOfFile(err)
		}
		slices.SortFunc(list, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
		a.w.fds.keep(f, list)
		c.burn(ctx, fileCall*int64(2+len(list)))
	}
	c.burn(ctx, int64(len(buf)/hostByte))
	used := 0
	for next := a.u64(3); next < uint64(len(f.entries)) && used < len(buf); next++ {
		ent := f.entries[next]
		b := make([]byte, sizeDirent, sizeDirent+len(ent.Name()))
		binary.LittleEndian.PutUint64(b, next+1)
		binary.LittleEndian.PutUint64(b[8:], inode(f.mount, path.Join(f.name, ent.Name())))
		binary.LittleEndian.PutUint32(b[16:], uint32(len(ent.Name())))
		b[20] = modeType(ent.Type())
		used += copy(buf[used:], append(b, ent.Name()...))
	}
	return a.putU32(4, uint32(used))
}
