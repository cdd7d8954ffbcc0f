package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// An interrupt while the env-server is not ready yet: nothing is in flight, so there is nothing to wait for.
func TestInterrupt_WhileServerStarts_LeavesAtOnce(t *testing.T) {
	t.Parallel()
	dir := evalFile(t, `
version = 1
name    = "deaf"
[tasks]
plugin = "arith"
[model]
name = "sum"
[server]
command    = ["sh", "-c", "exec sleep 3600 # {address}"]
stop_grace = "1s"
[[plugin]]
name   = "arith"
source = "$REPO/plugins/arith"
`)
	p := start(t, dir, "run", "eval.toml", "-o", "out")
	p.stderr.await(t, "deaf: 50 tasks")
	p.signal(t, os.Interrupt)
	if code := p.exit(t); code != 130 {
		t.Errorf("exit code: got %d want 130\n%s", code, p.stderr.String())
	}
	if s := readSummary(t, runDir(t, filepath.Join(dir, "out"))); s.NeverRun != 50 || s.ExitCode != 130 {
		t.Errorf("got %+v", s)
	}
}

// An interrupt while a plugin computes for ever ends it: no plugin can stop the host.
func TestInterrupt_WhilePluginGivesTasks_LeavesAtOnce(t *testing.T) {
	t.Parallel()
	dir := checkout(t, repoRoot(t))
	plug := filepath.Join(dir, "plugins", "spin")
	if err := os.Mkdir(plug, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(plug, "main.go"): `package main

import "github.com/wevalr/wevalr/plugins/sdk"

func init() {
	sdk.Register(sdk.Plugin{Tasks: func(cursor string, _ int) ([]sdk.Task, string, error) {
		if cursor == "" { // a run asks for the first task before it makes its directory
			return []sdk.Task{{Key: "first", Data: map[string]any{"prompt": "?"}}}, "more", nil
		}
		for {
		}
	}})
}

func main() {}
`,
		filepath.Join(plug, "plugin.toml"): `manifest = 1
name     = "spin"
version  = "1.0.0"
provides = ["task/v1"]
requires = []
encoding = "msgpack"
`,
		filepath.Join(dir, "eval.toml"): `version = 1
name    = "spin"
[tasks]
plugin = "spin"
[model]
name = "offline/echo"
[[plugin]]
name   = "spin"
source = "plugins/spin"
`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, dir, "run", "eval.toml", "-o", "out")
	if awaitMatches(1, regexp.MustCompile(`"name"`), filepath.Join(dir, "out", "spin", "*", "run.json")) < 1 {
		t.Fatalf("no run directory:\n%s", p.stderr.String())
	}
	p.signal(t, os.Interrupt)
	began := time.Now()
	if code := p.exit(t); code != 130 {
		t.Errorf("exit code: got %d want 130\n%s", code, p.stderr.String())
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
