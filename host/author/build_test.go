package author

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/plugin"
)

func TestMakeModule(t *testing.T) {
	needBuild(t)
	dir := newPlugin(t, "go", "scorer")
	b, err := MakeModule(t.Context(), BuildSpec{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if b.File != filepath.Join(dir, "my-scorer.wasm") || b.SHA256 != sum([]byte(read(t, b.File))) || b.Verified || b.Check.Refused {
		t.Errorf("got %+v", b)
	}
	if b, err = MakeModule(t.Context(), BuildSpec{Dir: dir, Verify: true}); err != nil || !b.Verified {
		t.Errorf("got %+v, %v", b, err)
	}
	var text bytes.Buffer
	if err := b.Text(&text); err != nil || !strings.Contains(text.String(), "verified: ") || !strings.Contains(text.String(), "wevalr plugin inspect "+b.File) {
		t.Errorf("got %q, %v", text.String(), err)
	}

	// Another file than the sources make is told, and left as it is.
	other := filepath.Join(t.TempDir(), "other.wasm")
	writeFile(t, other, "other")
	_, err = MakeModule(t.Context(), BuildSpec{Dir: dir, Output: other, Verify: true})
	if e, ok := errors.AsType[*DifferentError](err); !ok || e.Now != b.SHA256 || !strings.Contains(e.Error(), e.Was) || read(t, other) != "other" {
		t.Errorf("got %v", err)
	}
	if b, err = MakeModule(t.Context(), BuildSpec{Dir: dir, Output: filepath.Join(t.TempDir(), "new.wasm"), Verify: true}); err != nil || !b.Verified {
		t.Errorf("no file yet: got %+v, %v", b, err)
	}
}

func TestMakeModule_Refusals(t *testing.T) {
	needBuild(t)
	empty := t.TempDir()
	_, err := MakeModule(t.Context(), BuildSpec{Dir: empty})
	if be, ok := errors.AsType[*plugin.BuildError](err); !ok || !strings.Contains(be.Error(), "wevalr plugin new") {
		t.Errorf("empty folder: got %v", err)
	}

	// An import that the manifest does not declare never becomes a file.
	dir := newPlugin(t, "go", "rollout")
	edit(t, filepath.Join(dir, "plugin.toml"), "env = {", "clock = {")
	edit(t, filepath.Join(dir, "plugin.toml"), `methods = ["run"], `, "")
	_, err = MakeModule(t.Context(), BuildSpec{Dir: dir})
	if ae, ok := errors.AsType[*plugin.ABIError](err); !ok || !strings.Contains(ae.Error(), "needs the capability env, which the manifest does not declare") {
		t.Errorf("undeclared import: got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "my-rollout.wasm")); err == nil {
		t.Error("the module was written")
	}

	t.Setenv("PATH", t.TempDir())
	_, err = MakeModule(t.Context(), BuildSpec{Dir: dir})
	if be, ok := errors.AsType[*plugin.BuildError](err); !ok || !strings.Contains(be.Error(), "https://go.dev/dl") {
		t.Errorf("no toolchain: got %v", err)
	}
}
