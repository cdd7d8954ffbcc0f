package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// tree is a granted folder: read-only, and symbolic links cannot leave it. Only folders and
// regular files open; a pipe or device in it can neither block nor act.
type tree struct{ root *os.Root }

// Open implements fs.FS. Errors name the path as the guest knows it.
func (t tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := t.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if trouble := hostTrouble(err); trouble != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: trouble}
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() && !st.IsDir() {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f, nil
}

// hostTrouble is what err says of the host rather than of a file: another time the file opens. nil = nothing.
// Whoever treats a file that cannot be opened as one that is not there must look for it.
func hostTrouble(err error) error {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO} {
		if errors.Is(err, e) {
			return e
		}
	}
	return nil
}

// stat says what a name is; follow = what a symbolic link leads to, inside of the tree.
func (t tree) stat(name string, follow bool) (fs.FileInfo, error) {
	if follow {
		return t.root.Stat(filepath.FromSlash(name))
	}
	return t.root.Lstat(filepath.FromSlash(name))
}

// digest is the sha256 of the tree's files: paths and contents, in order, and where links lead that open as
// folders. What cannot be opened is left out as the guest sees it.
func (t tree) digest(ctx context.Context) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(t, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if d.IsDir() {
			return nil
		}
		f, err := t.Open(name)
		if err != nil {
			return hostTrouble(err) // else the guest cannot open it either
		}
		defer func() { _ = f.Close() }()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		if st.IsDir() {
			target, err := t.root.Readlink(filepath.FromSlash(name))
			_, _ = fmt.Fprintf(h, "%q -> %q\n", name, target)
			return err
		}
		one := sha256.New()
		if _, err := io.Copy(one, until(ctx, f)); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%q %x\n", name, one.Sum(nil))
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// until is a reader that ends with ctx.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(b)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
