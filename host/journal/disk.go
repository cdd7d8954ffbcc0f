package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/renameio/v2"
)

// disk is how a run's files change. Tests put one in its place that dies at a chosen write.
type disk interface {
	// Append opens a file for appending and makes it when it is not there.
	Append(name string) (appender, error)
	// Cut moves what stands at and after an offset to another file, then cuts it off.
	Cut(name string, at int64, to string) error
	// Replace writes a file anew: the old content or the new one, never a mixture.
	Replace(name string, write func(io.Writer) error) error
}

type appender interface {
	io.Writer
	Sync() error
	Close() error
}

type osDisk struct{ root *os.Root }

func (d osDisk) Append(name string) (appender, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, &DiskError{"open", name, err}
	}
	return f, nil
}

func (d osDisk) Cut(name string, at int64, to string) error {
	if err := d.Replace(to, func(w io.Writer) error {
		f, err := d.root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, io.NewSectionReader(f, at, 1<<62))
		return err
	}); err != nil {
		return err
	}
	f, err := d.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return &DiskError{"cut", name, err}
	}
	defer f.Close()
	if err := errors.Join(f.Truncate(at), f.Sync()); err != nil {
		return &DiskError{"cut", name, err}
	}
	return nil
}

func (d osDisk) Replace(name string, write func(io.Writer) error) error {
	f, err := renameio.NewPendingFile(name, renameio.WithRoot(d.root), renameio.WithPermissions(0o644))
	if err != nil {
		return &DiskError{"write", name, err}
	}
	defer func() { _ = f.Cleanup() }() // nothing to do after the rename
	w := bufio.NewWriterSize(f, 64<<10)
	if err := write(w); err != nil {
		return &DiskError{"write", name, err}
	}
	if err := w.Flush(); err != nil {
		return &DiskError{"write", name, err}
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return &DiskError{"write", name, err}
	}
	return syncDir(d.root)
}

// syncDir makes the names in a run's directory durable.
func syncDir(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return &DiskError{"sync", ".", err}
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return &DiskError{"sync", ".", err}
	}
	return nil
}

// sweep removes what an atomic write leaves behind when its process is killed in the middle.
func sweep(root *os.Root) error {
	for _, dir := range []string{".", RecoverDir} {
		f, err := root.Open(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("journal: sweep: %w", err)
		}
		names, err := f.Readdirnames(-1)
		f.Close()
		if err != nil {
			return fmt.Errorf("journal: sweep: %w", err)
		}
		for _, n := range names {
			if strings.HasPrefix(n, ".") && (strings.Contains(n, ".json") || strings.Contains(n, ".toml")) {
				if err := root.Remove(dir + "/" + n); err != nil {
					return &DiskError{"remove", n, err}
				}
			}
		}
	}
	return nil
}
