package procwatch

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// StartError says why there is no child. Nothing is left of the attempt.
type StartError struct {
	// Path is the program, as far as it was found.
	Path string
	// Err is the cause: a syscall.Errno where the system said no, exec.ErrNotFound, the cause of
	// Start's ctx.
	Err error
	// Detail says what a person needs beyond that: the interpreter of a script, the architecture
	// of a program. It may be "".
	Detail string
}

func (e *StartError) Error() string {
	s := "start child"
	if e.Path != "" {
		s += ": " + e.Path
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *StartError) Unwrap() error { return e.Err }

// execError turns the system's refusal into a StartError that names its reason.
func execError(path, dir string, err error) *StartError {
	if errors.As(err, new(*levelError)) {
		return &StartError{Path: path, Err: err}
	}
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		err = pe.Err
	}
	return &StartError{Path: path, Err: err, Detail: explain(path, dir, err)}
}

// explain looks for what the errno alone does not say: execve(2) names the script when its
// interpreter is missing, the program when the directory is.
func explain(path, dir string, err error) string {
	if fi, serr := os.Stat(dir); serr != nil || !fi.IsDir() {
		return fmt.Sprintf("working directory %s is not there", dir)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	fi, serr := os.Stat(path)
	if serr != nil {
		return ""
	}
	switch {
	case fi.IsDir():
		return "is a directory"
	case errors.Is(err, syscall.ENOENT):
		if line := hashbang(path); line != "" {
			return fmt.Sprintf("the script's interpreter is missing (%s)", line)
		}
		if loader, _ := elfFacts(path); loader != "" {
			return fmt.Sprintf("the program's loader %s is missing", loader)
		}
	case errors.Is(err, syscall.EACCES):
		if fi.Mode()&0o111 == 0 {
			return fmt.Sprintf("is not executable (mode %v)", fi.Mode().Perm())
		}
		return "may not be executed (permissions of its path, its interpreter or its mount)"
	case errors.Is(err, syscall.EAGAIN):
		return "no more processes are allowed"
	case errors.Is(err, syscall.ENOEXEC):
		if _, machine := elfFacts(path); machine != "" {
			return fmt.Sprintf("is a program for %s, this machine is %s", machine, runtime.GOARCH)
		}
		return "is neither a program nor a script with a #! line"
	}
	return ""
}

// hashbang returns the first line of a script, "" when path is none.
func hashbang(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 256)) // BINPRM_BUF_SIZE of linux/binfmts.h
	if err != nil || !bytes.HasPrefix(head, []byte("#!")) {
		return ""
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return strings.TrimSpace(string(line))
}

// elfFacts returns the loader that an ELF file asks for and its machine.
func elfFacts(path string) (loader, machine string) {
	f, err := elf.Open(path)
	if err != nil {
		return "", ""
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			if b, err := io.ReadAll(p.Open()); err == nil {
				loader = string(bytes.TrimRight(b, "\x00"))
			}
		}
	}
	return loader, strings.TrimPrefix(f.Machine.String(), "EM_")
}
