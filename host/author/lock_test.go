package author

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/plugin"
)

func lock(t *testing.T, s LockSpec) (*Locked, string) {
	t.Helper()
	got, err := LockPlugins(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := got.Text(&text); err != nil {
		t.Fatal(err)
	}
	return got, text.String()
}

func TestLockPlugins(t *testing.T) {
	good := scorerModule(t)
	path := onDisk(t, good)
	eval := filepath.Join(filepath.Dir(path), "eval.toml")
	spec := LockSpec{Eval: eval, Plugins: []Source{{"mine", path}}}

	got, text := lock(t, spec)
	if !got.Written || got.Changes[0].What != "added" || !strings.Contains(text, "asks for nothing") || !strings.Contains(text, "wevalr run "+eval) {
		t.Errorf("got %+v\n%s", got, text)
	}
	first := read(t, got.File)
	if got, _ = lock(t, spec); got.Changes[0].What != "unchanged" || read(t, got.File) != first {
		t.Errorf("again: got %+v", got)
	}

	// Other bytes with the same requests are written; the difference is shown.
	writeFile(t, path, string(swap(t, good, `"ignore_case"`, `"ignore_cas2"`)))
	if got, text = lock(t, spec); !got.Written || got.Changes[0].What != "changed" || !strings.Contains(text, " → ") {
		t.Errorf("changed: got %+v\n%s", got, text)
	}

	// More requests need --accept.
	wide := strings.Replace(plainManifest, "task/v1", "task/v1", 1) + "[capabilities]\nclock = { optional = true }\nfs.dataset = { optional = true }\n"
	writeFile(t, path, string(withManifest(t, good, wide)))
	before := read(t, got.File)
	got, text = lock(t, spec)
	if got.Written || !slices.Equal(got.Changes[0].Widened, []string{"clock", "fs.dataset"}) || read(t, got.File) != before {
		t.Errorf("widened: got %+v", got)
	}
	if !strings.Contains(text, "  + clock\n  + fs.dataset\n") || !strings.Contains(text, "wevalr plugin lock "+eval+" --accept") {
		t.Errorf("widened: got %s", text)
	}
	spec.Accept = true
	if got, _ = lock(t, spec); !got.Written || !strings.Contains(read(t, got.File), `requests = ["clock", "fs.dataset"]`) {
		t.Errorf("accepted: got %+v\n%s", got, read(t, got.File))
	}

	// A plugin that has left the eval file leaves the lock.
	spec.Plugins[0].Alias = "other"
	if got, text = lock(t, spec); len(got.Changes) != 2 || got.Changes[1].What != "removed" || !strings.Contains(text, "removed mine\n") {
		t.Errorf("removed: got %+v\n%s", got, text)
	}
	l, err := plugin.ReadLock(got.File)
	if err != nil || len(l.Plugins) != 1 || l.Plugins[0].Source != "m.wasm" {
		t.Errorf("got %+v, %v", l, err)
	}
}

func TestLockPlugins_Refusals(t *testing.T) {
	dir := t.TempDir()
	spec := LockSpec{Eval: filepath.Join(dir, "eval.toml"), Plugins: []Source{{"a", filepath.Join(dir, "a.wasm")}, {"b", filepath.Join(dir, "b.wasm")}}}
	_, err := LockPlugins(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "a.wasm") || !strings.Contains(err.Error(), "b.wasm") {
		t.Errorf("got %v, want both", err)
	}
	writeFile(t, filepath.Join(dir, plugin.LockFile), "lock = 9")
	if _, err := LockPlugins(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "lock = 9 is unknown") {
		t.Errorf("got %v", err)
	}
}
