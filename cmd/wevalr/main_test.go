package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host"
)

// TestMain makes the test binary three programs: the tests, wevalr itself (also as its own env-server
// and its warden), and testserver, an env-server that dies as it is told.
func TestMain(m *testing.M) {
	host.Reexec()
	testscript.Main(suite{m}, map[string]func(){
		"wevalr": main, "testserver": testServer, "faultserver": faultServerMain,
	})
}

// suite gives all tests one cache, so that each plugin is built once, and looks for leaks at the end.
type suite struct{ *testing.M }

func (s suite) Run() int {
	if err := goEnv(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	cache, err := os.MkdirTemp("", "wevaltest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer os.RemoveAll(cache)
	os.Setenv("XDG_CACHE_HOME", cache)
	os.Unsetenv("CI")
	code := s.M.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// goEnv pins the toolchain's own folders, which would otherwise follow XDG_CACHE_HOME and HOME.
func goEnv() error {
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	vars := map[string]string{}
	if err := json.Unmarshal(out, &vars); err != nil {
		return err
	}
	for k, v := range vars {
		os.Setenv(k, v)
	}
	return nil
}

// TestScripts runs testdata/script/*.txtar; the first word of a file's name is the verb that it is about.
// $REPO in a script's .toml files is the root of the checkout.
func TestScripts(t *testing.T) {
	root := repoRoot(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "rundir": cmdRundir, "field": cmdField, "await": cmdAwait, "sub": cmdSub,
		},
		Setup: func(e *testscript.Env) error {
			for _, k := range []string{"XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY"} {
				e.Setenv(k, os.Getenv(k))
			}
			e.Setenv("REPO", root)
			return expandRepo(e.WorkDir, root)
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// expandRepo puts the checkout's place into eval files, which have no variables of their own.
func expandRepo(dir, root string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".toml" || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.ReplaceAll(string(b), "$REPO", root)), 0o644)
	})
}

// repoRoot is the folder of go.mod.
func repoRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}
