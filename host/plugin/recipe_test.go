package plugin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/plugins"
	"github.com/wevalr/wevalr/plugins/abi"
)

const scriptManifest = `manifest = 1
name     = "mine"
version  = "0.1.0"
provides = ["scorer/v1"]
assets   = ["*.star", "plugin.toml"]
[[scorer]]
name   = "correct"
range  = [0, 1]
binary = true
`

func scriptFolder(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "plugin.toml", scriptManifest)
	writeFile(t, dir, "score.star", source)
	return dir
}

func TestBuilder_Build_Script(t *testing.T) {
	needBuild(t)
	e := newEngine(t)
	dir := scriptFolder(t, "def score(task, episode):\n    return episode.completion == task.target\n")
	p := load(t, e, Spec{Source: dir})
	if got := scoreOf(t, p, "correct", abi.Task{Target: "2"}, "2"); got != 1 {
		t.Errorf("got %v, want 1", got)
	}
	first, err := e.builder.Build(context.Background(), dir)
	if err != nil || !first.Cached {
		t.Fatalf("again: %+v, %v", first, err)
	}
	writeFile(t, dir, "score.star", "def score(task, episode):\n    return 1\n")
	other, err := e.builder.Build(context.Background(), dir)
	if err != nil || other.Cached || other.SHA256 == first.SHA256 {
		t.Errorf("a changed script: %v", err)
	}
	// The interpreter that wevalr carries as sources is the one of the checkout.
	shipped, err := (&Builder{}).Build(context.Background(), filepath.Join(hosttest.Root(t), "plugins/script"))
	if err != nil || !strings.HasPrefix(string(shipped.Module), string(other.Module[:len(other.Module)-2000])) {
		t.Errorf("the interpreter differs from plugins/script: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (&Builder{}).Build(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "carries no interpreter") {
		t.Errorf("no Go: got %v", err)
	}
}

func TestInterpreterMod_IsWevalrsOwn(t *testing.T) {
	for file, text := range map[string]string{"go.mod": plugins.InterpreterMod, "go.sum": plugins.InterpreterSum} {
		b, err := os.ReadFile(filepath.Join(hosttest.Root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(strings.ReplaceAll(text, "require ", "")) {
			if !strings.Contains(string(b), strings.TrimSpace(line)) {
				t.Errorf("%s has no line %q", file, line)
			}
		}
	}
}

func TestBuilder_Build_OtherLanguages(t *testing.T) {
	needBuild(t)
	e := newEngine(t)
	for name, command := range map[string]string{"conform-c": "clang-22", "conform-as": "asc", "conform-rust": "wasm-ld-14"} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(command); err != nil {
				t.Skipf("%s is not here", command)
			}
			p := load(t, e, Spec{Source: filepath.Join(hosttest.Root(t), "testplugins", name)})
			if tasks := allTasks(t, p); len(tasks) != 3 {
				t.Errorf("%d tasks, want 3", len(tasks))
			}
			b := &Builder{CacheDir: e.CacheDir()}
			if built, err := b.Build(context.Background(), filepath.Join(hosttest.Root(t), "testplugins", name)); err != nil || !built.Cached {
				t.Errorf("again: %v", err)
			}
		})
	}
	t.Run("error", func(t *testing.T) {
		if _, err := exec.LookPath("clang-22"); err != nil {
			t.Skip("clang-22 is not here")
		}
		dir := t.TempDir()
		writeFile(t, dir, "plugin.toml", manifestHead+scorerManifest)
		writeFile(t, dir, "plugin.c", "int x = y;\n")
		_, err := (&Builder{}).Build(context.Background(), dir)
		if err == nil || !strings.Contains(err.Error(), "plugin.c:1:9") {
			t.Errorf("got %v, want clang's own words", err)
		}
	})
}
