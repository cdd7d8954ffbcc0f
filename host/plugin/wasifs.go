package plugin

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Kinds of open descriptors.
const (
	kindInput  = iota // always at its end
	kindOutput        // the log
	kindFolder
	kindFile
)

// firstFD is the first descriptor after standard input, output and error.
const firstFD = 3

// maxFDs bounds open descriptors.
const maxFDs = 64

// descriptor is an open descriptor. What is not name, kind, flags and pos can be made from them.
type descriptor struct {
	kind  int
	mount string // name of the grant
	name  string // inside of it; "." = the folder itself
	root  bool   // opened by the host: the guest finds it by its number
	flags uint16
	pos   int64

	file    fs.File       // of kindFile; nil in a snapshot
	entries []fs.DirEntry // of kindFolder, once listed
}

// descriptors are what is open, by number.
type descriptors struct {
	trees map[string]tree
	open  map[uint32]*descriptor
}

// newDescriptors has the three standard ones and one for each granted folder.
func newDescriptors(trees map[string]tree) *descriptors {
	d := &descriptors{trees: trees, open: map[uint32]*descriptor{
		0: {kind: kindInput}, 1: {kind: kindOutput}, 2: {kind: kindOutput},
	}}
	for _, name := range sortedKeys(trees) {
		d.open[d.free()] = &descriptor{kind: kindFolder, mount: name, name: ".", root: true}
	}
	return d
}

func (d *descriptors) get(fd uint32) *descriptor { return d.open[fd] }

func (d *descriptors) free() uint32 {
	fd := uint32(firstFD)
	for d.open[fd] != nil {
		fd++
	}
	return fd
}

func (d *descriptor) close() {
	if d.file != nil {
		_ = d.file.Close()
	}
}

func (d *descriptors) close() {
	for _, f := range d.open {
		f.close()
	}
	clear(d.open)
}

// snapshot is what is open, to be put back by restore.
func (d *descriptors) snapshot() map[uint32]descriptor {
	s := make(map[uint32]descriptor, len(d.open))
	for fd, f := range d.open {
		kept := *f
		kept.file, kept.entries = nil, nil
		s[fd] = kept
	}
	return s
}

// restore opens and closes until the snapshot's descriptors are open, each where it stood.
func (d *descriptors) restore(s map[uint32]descriptor) error {
	for fd, f := range d.open {
		want, there := s[fd]
		if !there || want.kind != f.kind || want.mount != f.mount || want.name != f.name {
			f.close()
			delete(d.open, fd)
		}
	}
	for fd, want := range s {
		f := d.open[fd]
		if f == nil {
			f = &want
			if f.kind == kindFile {
				var err error
				if f.file, err = d.trees[f.mount].Open(f.name); err != nil {
					return err
				}
			}
			d.open[fd] = f
		}
		f.pos, f.flags, f.entries = want.pos, want.flags, nil
	}
	return nil
}

// locate turns a path below an open folder into a name in its tree.
func (d *descriptors) locate(fd uint32, p []byte) (tree, *descriptor, string, errno) {
	f := d.get(fd)
	switch {
	case f == nil:
		return tree{}, nil, "", errBadf
	case f.kind != kindFolder:
		return tree{}, nil, "", errNotdir
	case len(p) > 4096:
		return tree{}, nil, "", errNametoo
	case len(p) == 0:
		return tree{}, nil, "", errNoent
	case p[0] == '/':
		return tree{}, nil, "", errPerm
	}
	name := path.Join(f.name, string(p))
	if name == ".." || strings.HasPrefix(name, "../") {
		return tree{}, nil, "", errNotcapable
	}
	if !fs.ValidPath(name) {
		return tree{}, nil, "", errInval
	}
	return d.trees[f.mount], f, name, success
}

// statusOfFile is what a guest learns of a failing file: nothing of the host's.
func statusOfFile(err error) errno {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoent
	case errors.Is(err, fs.ErrInvalid):
		return errInval
	}
	return errNotcapable
}

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
	c.burn(ctx, int64(len(p)))
	file, err := tr.Open(name)
	if err != nil {
		return statusOfFile(err)
	}
	st, err := file.Stat()
	f := &descriptor{kind: kindFile, mount: dir.mount, name: name, flags: uint16(a.u32(7)), file: file}
	switch {
	case err != nil:
		e = errIO
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

// File types.
const (
	typeUnknown = 0
	typeDevice  = 2
	typeFolder  = 3
	typeFile    = 4
	typeLink    = 7
)

func (d *descriptor) fileType() byte {
	switch d.kind {
	case kindFolder:
		return typeFolder
	case kindFile:
		return typeFile
	}
	return typeDevice
}

// Rights: what can be done here with each kind.
const (
	rightsFile   = 1<<1 | 1<<2 | 1<<5 | 1<<7 | 1<<21 | 1<<27
	rightsFolder = 1<<13 | 1<<14 | 1<<15 | 1<<18 | 1<<21
)

func fdstatGet(_ context.Context, _ *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	if f == nil {
		return errBadf
	}
	b, ok := a.view(1, 24)
	if !ok {
		return errFault
	}
	clear(b)
	b[0] = f.fileType()
	binary.LittleEndian.PutUint16(b[2:], f.flags)
	base, inheriting := uint64(rightsFile), uint64(0)
	switch f.kind {
	case kindFolder:
		base, inheriting = rightsFolder, rightsFile|rightsFolder
	case kindOutput:
		base = rightWrite | 1<<21 | 1<<27
	}
	binary.LittleEndian.PutUint64(b[8:], base)
	binary.LittleEndian.PutUint64(b[16:], inheriting)
	return success
}

func fdstatSetFlags(_ context.Context, _ *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	if f == nil {
		return errBadf
	}
	f.flags = uint16(a.u32(1))
	return success
}

// inode names a file without telling anything of the host's.
func inode(mount, name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(mount + "/" + name))
	return h.Sum64()
}

// putStat writes a filestat. Times and links are not the host's: equal folders look equal.
func (a wasiArgs) putStat(i int, typ byte, ino uint64, size int64) errno {
	b, ok := a.view(i, 64)
	if !ok {
		return errFault
	}
	clear(b)
	binary.LittleEndian.PutUint64(b[8:], ino)
	b[16] = typ
	binary.LittleEndian.PutUint64(b[24:], 1)
	binary.LittleEndian.PutUint64(b[32:], uint64(size))
	return success
}

func fdFilestat(_ context.Context, _ *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	if f == nil {
		return errBadf
	}
	size := int64(0)
	if f.kind == kindFile {
		st, err := f.file.Stat()
		if err != nil {
			return errIO
		}
		size = st.Size()
	}
	return a.putStat(1, f.fileType(), inode(f.mount, f.name), size)
}

func pathFilestat(ctx context.Context, c *call, a wasiArgs) errno {
	p, e := a.path(2)
	if e != success {
		return e
	}
	tr, dir, name, e := a.w.fds.locate(a.u32(0), p)
	if e != success {
		return e
	}
	c.burn(ctx, int64(len(p)))
	st, err := tr.stat(name, a.u32(1)&followLinks != 0)
	if err != nil {
		return statusOfFile(err)
	}
	size := int64(0)
	if st.Mode().IsRegular() {
		size = st.Size()
	}
	return a.putStat(4, modeType(st.Mode()), inode(dir.mount, name), size)
}

func modeType(m fs.FileMode) byte {
	switch {
	case m.IsRegular():
		return typeFile
	case m.IsDir():
		return typeFolder
	case m.Type() == fs.ModeSymlink:
		return typeLink
	}
	return typeUnknown
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
		c.burn(ctx, int64(len(v)/hostByte))
		k, err := r.ReadAt(v, pos+int64(n))
		n += k
		if err != nil && !errors.Is(err, io.EOF) {
			return n, errIO
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

func fdSeek(_ context.Context, _ *call, a wasiArgs) errno {
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
		st, err := f.file.Stat()
		if err != nil {
			return errIO
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
		list, err := fs.ReadDir(a.w.fds.trees[f.mount], f.name)
		if err != nil {
			return statusOfFile(err)
		}
		slices.SortFunc(list, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
		f.entries = list
		c.burn(ctx, int64(len(list))*64)
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
