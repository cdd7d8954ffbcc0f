package realmodel_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/configs/internal/evaltest"
)

// ours is what the blocks say that are run here.
const ours = "```sh norun needs the model; the tests of configs/real-model run it"

// The commands of docs/real-model.md, in a copy of what they need.
func TestDocs_FiveMinutes(t *testing.T) {
	m := serve(t, "")
	data(t)
	if !long() {
		t.Skip("WEVALR_LONG is not 1: 25 answers")
	}
	text, err := os.ReadFile("../../docs/real-model.md")
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, b := range strings.Split(string(text), ours+"\n")[1:] {
		block, _, _ := strings.Cut(b, "```")
		script += block
	}
	root := t.TempDir()
	evaltest.Checkout(t, filepath.Join(root, "main"))
	if err := os.CopyFS(filepath.Join(root, "shared/data/gsm8k"), os.DirFS("../../../shared/data/gsm8k")); err != nil {
		t.Fatal(err)
	}
	eval := filepath.Join(root, "main/configs/real-model/eval.toml")
	b, err := os.ReadFile(eval)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(eval, []byte(strings.ReplaceAll(string(b), "8001", m.port)), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e", "-x", "-c", script)
	cmd.Dir = filepath.Join(root, "main")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(wevalr)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"rollouts: 20 planned", "rollouts: 25 planned", "How many total meters does he run a week?"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in what the commands print:\n%s", want, out)
		}
	}
}
