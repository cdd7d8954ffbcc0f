package verifiers_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wevalr/wevalr/configs/internal/evaltest"
)

// ours is what the blocks say that are run here, and not where there is no verifiers.
const ours = "```sh norun needs verifiers; the tests of configs/verifiers run it"

// The commands of docs/verifiers.md, in their order, in a copy of what they need.
func TestDocs_FiveMinutes(t *testing.T) {
	v := release(t)
	text, err := os.ReadFile("../../docs/verifiers.md")
	if err != nil {
		t.Fatal(err)
	}
	script, blocks := "", strings.Split(string(text), ours+"\n")
	for _, b := range blocks[1:] {
		block, _, _ := strings.Cut(b, "```")
		script += block
	}
	if len(blocks) < 4 {
		t.Fatalf("docs/verifiers.md has %d blocks for this test", len(blocks)-1)
	}
	dir, port := t.TempDir(), evaltest.FreePort(t)
	evaltest.Checkout(t, dir)
	eval := filepath.Join(dir, "configs/verifiers/eval.toml")
	b, err := os.ReadFile(eval)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(eval, []byte(strings.ReplaceAll(string(b), "8000", port)), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e", "-x", "-c", strings.ReplaceAll(script, "8000", port)+"kill %1 2>/dev/null || kill $!\n")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1",
		"PATH="+strings.Join([]string{filepath.Dir(v.python), filepath.Dir(wevalr), os.Getenv("PATH")}, ":"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the stand-in model too
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"80 planned = 80 completed", "exact-match.match", "said", "lookup"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in what the commands print:\n%s", want, out)
		}
	}
}

// The page says which versions are tested; versions.txt and the requirements agree with it.
func TestDocs_Versions(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	all := versions(t)
	if len(all) != 2 {
		t.Fatalf("got %v, want a release and a pre-release", all)
	}
	for i, v := range all {
		if !strings.Contains(string(page), "\n| "+v.name+" |") {
			t.Errorf("docs/protocol.md does not tell of %s", v.name)
		}
		file := []string{"requirements.txt", "requirements-pre.txt"}[i]
		pins, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(pins), fmt.Sprintf("\nverifiers==%s\n", v.name)) {
			t.Errorf("%s does not pin verifiers %s", file, v.name)
		}
	}
}

// The Pythons are what versions.txt says they are.
func TestVersions(t *testing.T) {
	eachVersion(t, func(t *testing.T, v version) {
		out, err := exec.CommandContext(t.Context(), v.python, "-c", "import importlib.metadata as m; print(m.version('verifiers'))").Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != v.name {
			t.Errorf("%s has verifiers %q, %v; want %s", v.variable, got, err, v.name)
		}
	})
}

// The eval file passes its check without verifiers.
func TestEval_Check(t *testing.T) {
	e := &eval{dir: t.TempDir()}
	p := e.start(t, "config", "check", filepath.Join(repo(t), "configs/verifiers/eval.toml"))
	within(t, p.done, "end of config check", nil)
	if code := p.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
}
