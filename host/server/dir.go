package server

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// maxSocketPath keeps ipc endpoints below sun_path's limit (107 bytes on Linux, 103 on darwin).
const maxSocketPath = 90

// sweepAge spares directories that another wevalr has just made and not locked yet.
const sweepAge = time.Minute

// generationDir is the 0700 directory of one generation: the socket, and the child's TMPDIR. Its
// lock is held while we live, so that the next start can sweep what a killed wevalr left.
type generationDir struct {
	path string
	lock *flock.Flock
}

// newGenerationDir makes the directory under XDG_RUNTIME_DIR or /tmp, and sweeps stale ones.
func newGenerationDir() (*generationDir, error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" || len(base) > 40 {
		base = "/tmp"
	}
	sweep(base)
	path, err := os.MkdirTemp(base, "wevalr-")
	if err != nil {
		return nil, fmt.Errorf("server: directory of a generation: %w", err)
	}
	if len(path) > maxSocketPath-len("/s.sock") {
		_ = os.RemoveAll(path)
		return nil, fmt.Errorf("server: directory %s is too long a path for a socket (at most %d bytes)", path, maxSocketPath)
	}
	lock := flock.New(filepath.Join(path, "lock"))
	if _, err := lock.TryLock(); err != nil {
		_ = os.RemoveAll(path)
		return nil, fmt.Errorf("server: lock %s: %w", path, err)
	}
	return &generationDir{path: path, lock: lock}, nil
}

func (d *generationDir) socket() string { return filepath.Join(d.path, "s.sock") }

func (d *generationDir) remove() {
	_ = os.RemoveAll(d.path)
	_ = d.lock.Close()
}

// sweep removes directories of ours whose lock nobody holds.
func sweep(base string) {
	stale, _ := filepath.Glob(filepath.Join(base, "wevalr-*", "lock"))
	for _, name := range stale {
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < sweepAge {
			continue
		}
		lock := flock.New(name)
		if ok, err := lock.TryLock(); err == nil && ok {
			_ = os.RemoveAll(filepath.Dir(name))
		}
		_ = lock.Close()
	}
}
