package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// goTool is the Go toolchain on PATH.
type goTool struct {
	path  string
	stamp string // changes with the toolchain, known without running it
	env   []string
}

// findGo looks for the toolchain. dir is for the error.
func findGo(dir string) (*goTool, error) {
	path, err := exec.LookPath("go")
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, &BuildError{
			Dir: dir, Step: "toolchain", Cause: errors.New("the Go toolchain (command go) is not on PATH"),
			Remedy: "install Go from https://go.dev/dl, or name a .wasm file that was built elsewhere instead of the folder",
		}
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, &BuildError{Dir: dir, Step: "toolchain", Cause: err}
	}
	t := &goTool{path: path, stamp: fmt.Sprintf("%s %d %d", path, st.Size(), st.ModTime().UnixNano())}
	t.env = []string{
		"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=",
	}
	for _, k := range []string{"HOME", "PATH", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY"} {
		if v, set := os.LookupEnv(k); set {
			t.env = append(t.env, k+"="+v)
		}
	}
	return t, nil
}

// build compiles the package in dir and gives the module's bytes. -buildvcs=false keeps version
// control tools, and with them a stranger's configuration of them, out of it.
func (t *goTool) build(ctx context.Context, dir string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "wevalr-build-")
	if err != nil {
		return nil, &BuildError{Dir: dir, Step: "build", Cause: err}
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	out := filepath.Join(tmp, "plugin.wasm")
	if _, err := t.run(ctx, dir, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w", "-o", out, "."); err != nil {
		return nil, err
	}
	code, err := readModule(out)
	if err != nil {
		remedy := ""
		if errors.Is(err, os.ErrNotExist) {
			remedy = "the folder's package must be package main"
		}
		return nil, &BuildError{Dir: dir, Step: "build", Cause: errors.New("no module came out of it"), Remedy: remedy}
	}
	return code, nil
}

const maxToolText = 64 << 10

// run runs the go command in dir. The end of ctx kills it with its children.
func (t *goTool) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.path, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clip(t.env), "PWD="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	text := ring{max: maxToolText}
	cmd.Stdout, cmd.Stderr = &out, &text
	err := cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("build: %s: %w", dir, context.Cause(ctx))
	}
	step := filepath.Base(t.path)
	if step == "go" {
		step += " " + args[0]
	}
	e := &BuildError{Dir: dir, Step: step, Cause: err, Output: text.text()}
	e.Remedy = remedyFor(e.Output)
	return nil, e
}

// remedyFor adds to the toolchain's own words where they do not say what to do.
func remedyFor(output string) string {
	switch {
	case strings.Contains(output, "GOTOOLCHAIN=local"):
		return "the plugin wants a newer Go than the one on PATH: install that one"
	case strings.Contains(output, "go.mod file not found"):
		return "the folder is not in a Go module: run go mod init there"
	case strings.Contains(output, "no required module provides"), strings.Contains(output, "missing go.sum entry"):
		return "run go mod tidy in the plugin's module"
	}
	return ""
}
