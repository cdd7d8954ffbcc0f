package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestRun_WrongEval runs every eval file of testdata/wrong.txtar: each is refused with exit code 2 and
// before a run directory is made, and what is said stands in testdata/wrong.golden.
func TestRun_WrongEval(t *testing.T) {
	t.Parallel()
	root, dir := repoRoot(t), t.TempDir()
	cases, err := txtar.ParseFile("testdata/wrong.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if err := txtar.Write(cases, dir); err != nil {
		t.Fatal(err)
	}
	if err := expandRepo(dir, root); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	n := 0
	for _, f := range cases.Files {
		if strings.Contains(f.Name, "/") || filepath.Ext(f.Name) != ".toml" {
			continue
		}
		n++
		args, env := caseLines(string(f.Data))
		p := startEnv(t, dir, env, append([]string{"run", f.Name, "-o", "out", "--display", "none"}, args...)...)
		code := p.exit(t)
		text := p.stderr.String()
		if code != 2 {
			t.Errorf("%s: exit code got %d want 2\n%s", f.Name, code, text)
		}
		if strings.Contains(text, "hunter2") || p.stdout.Len() > 0 {
			t.Errorf("%s: a secret, or something on stdout:\n%s%s", f.Name, p.stdout.String(), text)
		}
		text = strings.NewReplacer(dir, "$WORK", root, "$REPO").Replace(text)
		fmt.Fprintf(&got, "== %s\n%s\n", strings.TrimSuffix(f.Name, ".toml"), text)
	}
	if n < 40 {
		t.Errorf("got %d cases", n)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
		t.Error("a refused eval file has a run directory")
	}
	compareGolden(t, "testdata/wrong.golden", got.String())
}

// caseLines reads the leading comments of a case.
func caseLines(text string) (args, env []string) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# args: "); ok {
			args = append(args, strings.Fields(rest)...)
		} else if rest, ok := strings.CutPrefix(line, "# env: "); ok {
			env = append(env, strings.Fields(rest)...)
		} else {
			break
		}
	}
	return args, env
}

// compareGolden compares section by section, so that a failure shows the one that differs.
func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, w := sections(got), sections(string(want))
	for name := range w {
		if g[name] != w[name] {
			t.Errorf("%s: got\n%s\nwant\n%s", name, g[name], w[name])
		}
	}
	if len(g) != len(w) {
		t.Errorf("got %d sections want %d; run with -update", len(g), len(w))
	}
}

func sections(text string) map[string]string {
	out := map[string]string{}
	for _, s := range strings.Split("\n"+text, "\n== ")[1:] {
		name, body, _ := strings.Cut(s, "\n")
		out[name] = body
	}
	return out
}
