package procwatch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestStart_SaysWhyThereIsNoChild(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := elfFor(t, 0x16) // s390
	tests := []struct {
		name, path, dir string
		errno           error
		detail          string
		linux           bool
	}{
		{"missing", filepath.Join(dir, "none"), "", syscall.ENOENT, "", false},
		{"missing name", "no-such-program-anywhere", "", exec.ErrNotFound, "", false},
		{"directory", dir, "", syscall.EACCES, "is a directory", false},
		{"not executable", file("plain", 0o644, "#!/bin/sh\n"), "", syscall.EACCES, "mode -rw-r--r--", false},
		{"no program", file("text", 0o755, "hello"), "", syscall.ENOEXEC, "neither a program nor a script", false},
		{"interpreter missing", file("script", 0o755, "#!/no/such/python3 -u\nx"), "", syscall.ENOENT, "#!/no/such/python3 -u", false},
		{"wrong architecture", file("elf", 0o755, foreign), "", syscall.ENOEXEC, "program for S390", true},
		{"directory missing", "/bin/sh", filepath.Join(dir, "gone"), syscall.ENOENT, filepath.Join(dir, "gone"), false},
	}
	each(t, func(t *testing.T, level Containment) {
		before := resources()
		for _, tt := range tests {
			if tt.linux && runtime.GOOS != "linux" {
				continue
			}
			p, err := Start(t.Context(), Spec{Argv: []string{tt.path}, Dir: tt.dir, Containment: level})
			var se *StartError
			if p != nil || !errors.As(err, &se) || !errors.Is(err, tt.errno) {
				t.Errorf("%s: got %v", tt.name, err)
				continue
			}
			if se.Path != tt.path || !strings.Contains(se.Detail, tt.detail) || tt.detail == "" && se.Detail != "" {
				t.Errorf("%s: got path %s, detail %q", tt.name, se.Path, se.Detail)
			}
		}
		sameResources(t, before)
	})
}

// elfFor returns a minimal ELF header for a machine.
func elfFor(t *testing.T, machine byte) string {
	t.Helper()
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	b[16], b[18], b[20] = 2, machine, 1
	b[52], b[54], b[58] = 64, 56, 64
	return string(b)
}

func TestStart_RefusesNonsense(t *testing.T) {
	for name, spec := range map[string]Spec{
		"no command":          {},
		"NUL in argv":         {Argv: []string{"/bin/sh", "a\x00b"}},
		"unknown containment": {Argv: sh("exit"), Containment: "jail"},
		"notify on stderr":    {Argv: sh("exit"), NotifyFD: 2},
		"relative temp dir":   {Argv: sh("exit"), TempDir: "x"},
		"root as temp dir":    {Argv: sh("exit"), TempDir: "/tmp/.."},
	} {
		var se *StartError
		if _, err := Start(t.Context(), spec); !errors.As(err, &se) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestStart_EndedCtxStartsNothing(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	each(t, func(t *testing.T, level Containment) {
		if _, err := Start(ctx, Spec{Argv: sh("exit"), Containment: level}); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
}

func TestStart_CtxDoesNotBoundTheLife(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		ctx, cancel := context.WithCancel(t.Context())
		p, err := Start(ctx, Spec{Argv: helperArgv("on-term"), Containment: level})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		e, err := p.Stop(context.Background(), "")
		if err != nil || e.Cause != CauseStopped {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

func TestStart_EnvDirAndStdin(t *testing.T) {
	t.Setenv("PROCWATCH_SECRET", "x")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{Argv: sh(`pwd; echo "[$PROCWATCH_SECRET]"; cat; [ -n "$PATH" ] && echo path`), Dir: dir})
		if got := text(ended(t, p).Tail); got != dir+"\n[]\npath\n" {
			t.Errorf("nil Env: got %q", got)
		}
		p, _ = child(t, level, Spec{Argv: sh(`printf %s "$A"`), Env: []string{"A=\xff"}})
		if got := text(ended(t, p).Tail); got != "\xff\n" {
			t.Errorf("Env: got %q", got)
		}
	})
}

func TestStart_AutoReportsItsLevel(t *testing.T) {
	p, _ := child(t, Auto, Spec{Argv: sh("exit")})
	all := levels(t)
	if want := all[len(all)-1]; p.Containment() != want {
		t.Errorf("got %s want %s", p.Containment(), want)
	}
	ended(t, p)
}

func TestStart_WardenNeedsMain(t *testing.T) {
	hooked.Store(false)
	defer hooked.Store(true)
	var se *StartError
	if _, err := Start(t.Context(), Spec{Argv: sh("exit"), Containment: Warden}); !errors.As(err, &se) || !errors.As(err, new(*levelError)) {
		t.Errorf("got %v", err)
	}
	var log strings.Builder
	p, err := Start(t.Context(), Spec{Argv: sh("exit"), Logger: textLogger(&log)})
	if err != nil || p.Containment() != Group {
		t.Fatalf("auto: got %v", err)
	}
	ended(t, p)
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("got %d warnings in\n%s", n, log.String())
	}
}
