package plugin

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"io/fs"
)

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

func fdFilestat(ctx context.Context, c *call, a wasiArgs) errno {
	f := a.w.fds.get(a.u32(0))
	if f == nil {
		return errBadf
	}
	size := int64(0)
	if f.kind == kindFile {
		c.burn(ctx, fileCall)
		st, err := f.file.Stat()
		if err != nil {
			return statusOfOpen(err)
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
	c.walk(ctx, name)
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
