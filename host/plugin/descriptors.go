package plugin

import (
	"errors"
	"io/fs"
	"path"
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
		if !there || want.kind != f.kind || want.mount != f.mount || want.name != f.name || want.root != f.root {
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

// maxListed is how many entries of folders are kept besides those of the last one: they take the host's memory,
// not the guest's. A folder is listed again where its entries are missing.
const maxListed = 1 << 16

// keep keeps a folder's entries.
func (d *descriptors) keep(f *descriptor, list []fs.DirEntry) {
	f.entries = nil
	held := len(list)
	for _, other := range d.open {
		held += len(other.entries)
	}
	if held > maxListed {
		for _, other := range d.open {
			other.entries = nil
		}
	}
	f.entries = list
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

// statusOfOpen is what a guest learns of an open file that fails: nothing where the host does.
func statusOfOpen(err error) errno {
	if hostTrouble(err) != nil {
		panic(&hostError{err})
	}
	return errIO
}

// statusOfFile is what a guest learns of a failing file: nothing of the host's.
func statusOfFile(err error) errno {
	if hostTrouble(err) != nil {
		panic(&hostError{err})
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNoent
	case errors.Is(err, fs.ErrInvalid):
		return errInval
	}
	return errNotcapable
}
