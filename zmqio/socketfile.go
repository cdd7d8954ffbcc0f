package zmqio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// socketFile is an ipc path that this process serves, and the lock that says so.
type socketFile struct {
	path string
	info fs.FileInfo // of our socket: another one in its place is not ours to remove
	lock *os.File
}

// listenFile binds path by the rules of [Listen].
func listenFile(path string) (*socketFile, net.Listener, error) {
	if err := privateDir(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, nil, err
	}
	f := &socketFile{path: path, lock: lock}
	l, err := f.bind()
	if err != nil {
		f.close()
		return nil, nil, err
	}
	return f, l, nil
}

// privateDir makes dir, or checks that nobody else can reach into it.
func privateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("zmqio: listen: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("zmqio: listen: %w", err)
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("zmqio: listen: %s: want a directory of this user with mode 0700, have %v", dir, st.Mode())
	}
	return nil
}

// lockFile holds path exclusively. The file that was locked must still be the one at path, since
// whoever held it before removed it.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("zmqio: listen: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = &InUseError{Path: path, Why: "another server holds it"}
		}
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		mine, err1 := f.Stat()
		there, err2 := os.Lstat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return f, nil
		}
		_ = f.Close()
	}
}

// bind replaces a socket that nobody serves.
func (f *socketFile) bind() (net.Listener, error) {
	if st, err := os.Lstat(f.path); err == nil {
		if st.Mode()&os.ModeSocket == 0 {
			return nil, &InUseError{Path: f.path, Why: "it is no socket"}
		}
		var d net.Dialer
		nc, err := d.DialContext(context.Background(), "unix", f.path)
		if err == nil {
			_ = nc.Close()
			return nil, &InUseError{Path: f.path, Why: "a server without its lock answers"}
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, &InUseError{Path: f.path, Why: err.Error()}
		}
		if err := os.Remove(f.path); err != nil {
			return nil, fmt.Errorf("zmqio: listen: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("zmqio: listen: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(f.path, 0o600); err == nil {
		f.info, err = os.Lstat(f.path)
	}
	if err != nil {
		_ = l.Close()
		_ = os.Remove(f.path)
		return nil, fmt.Errorf("zmqio: listen: %w", err)
	}
	return l, nil
}

// close removes the socket, if it is still ours, and then the lock.
func (f *socketFile) close() {
	if st, err := os.Lstat(f.path); err == nil && f.info != nil && os.SameFile(st, f.info) {
		_ = os.Remove(f.path)
	}
	_ = os.Remove(f.lock.Name())
	_ = f.lock.Close()
}
