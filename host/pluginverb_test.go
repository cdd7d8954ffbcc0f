package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/plugin"
)

// verbs is a Host whose output can be read.
func verbs() (*Host, *bytes.Buffer, *bytes.Buffer) {
	var out, errs bytes.Buffer
	return New(&out, &errs, nil, func(int) {}), &out, &errs
}

// authored makes a plugin from a template, builds it beside its folder and gives an eval file that names the
// module.
func authored(t *testing.T, kind, entry string) (h *Host, eval, module string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds plugins for wasip1")
	}
	h, out, _ := verbs()
	dir := t.TempDir()
	if err := h.PluginNew(PluginNewOptions{Name: "mine", Lang: "go", Kind: kind, Dir: filepath.Join(dir, "src")}, true); err != nil {
		t.Fatal(err)
	}
	var made struct{ Next []string }
	if err := json.Unmarshal(out.Bytes(), &made); err != nil || len(made.Next) != 3 {
		t.Fatalf("got %s, %v", out, err)
	}
	module = filepath.Join(dir, "mine.wasm")
	if code, err := h.PluginBuild(t.Context(), PluginBuildOptions{Dir: filepath.Join(dir, "src"), Output: module}, true); code != 0 || err != nil {
		t.Fatalf("got %d, %v", code, err)
	}
	eval = filepath.Join(dir, "eval.toml")
	writeEval(t, eval, entry)
	return h, eval, module
}

func writeEval(t *testing.T, eval, entry string) {
	t.Helper()
	text := "version = 1\nname = \"mine\"\n[tasks]\nplugin = \"mine\"\n[model]\nname = \"offline/demo\"\n[[plugin]]\nname = \"mine\"\nsource = \"mine.wasm\"\n" + entry
	if err := os.WriteFile(eval, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// loadEval is what run does before it looks at the lock.
func loadEval(t *testing.T, eval string) (*plugins, error) {
	t.Helper()
	cfg, err := loadConfig(eval, Overrides{})
	if err != nil {
		return nil, err
	}
	ps, err := loadPlugins(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Cleanup(func() { ps.close(context.Background()) })
	}
	return ps, err
}

// swapBytes replaces text in a file by text of the same length.
func swapBytes(t *testing.T, file, was, now string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(was) != len(now) || !bytes.Contains(b, []byte(was)) {
		t.Fatalf("%s: %q is not there", file, was)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(b, []byte(was), []byte(now)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Whoever changes a locked plugin, its options or its grants is told so, each time in other words.
func TestCheckLock_Tampered(t *testing.T) {
	h, eval, module := authored(t, "scorer", "")
	check := func() error {
		ps, err := loadEval(t, eval)
		if err != nil {
			return err
		}
		return checkLock(t.Context(), eval, ps)
	}
	if err := check(); err != nil {
		t.Errorf("no lock: got %v", err)
	}
	if code, err := h.PluginLock(t.Context(), eval, false, true); code != 0 || err != nil {
		t.Fatalf("lock: got %d, %v", code, err)
	}
	if err := check(); err != nil {
		t.Errorf("as locked: got %v", err)
	}
	lock := filepath.Join(filepath.Dir(eval), plugin.LockFile)
	before, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	original, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, entry string
		tamper      func()
		want        string
	}{
		{"a byte", "", func() { swapBytes(t, module, "0.1.0", "0.1.1") }, "plugin mine has changed: sha256 is "},
		{"an option's name", "options = { ignore_cases = true }\n", func() {}, "mine: options: ignore_cases: unknown option, there are: ignore_case"},
		{"an option's type", "options = { ignore_case = 1 }\n", func() {}, "ignore_case: want bool"},
		{"a grant", "grant = { clock = true }\n", func() {}, "mine: grant: clock: granted, but the plugin does not ask for it"},
		{"older ABI", "", func() { swapBytes(t, module, "wevalr_abi_1_0", "wevalr_abi_0_9") }, "needs ABI 0.9, this wevalr has 1.0"},
		{"newer ABI", "", func() { swapBytes(t, module, "wevalr_abi_1_0", "wevalr_abi_1_9") }, "needs ABI 1.9, this wevalr has 1.0\nuse a newer wevalr"},
		{"manifest", "", func() { swapBytes(t, module, "manifest = 1\n", "manifest = 2\n") }, "manifest = 2 is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(module, original, 0o600); err != nil {
				t.Fatal(err)
			}
			writeEval(t, eval, c.entry)
			c.tamper()
			err := check()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if code := ExitCode(err); code != ExitUsage {
				t.Errorf("exit code: got %d", code)
			}
		})
	}
	if after, err := os.ReadFile(lock); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the lock was written: %v", err)
	}
}

// A rollout plugin that comes to ask for more: the lock refuses it, lock without --accept writes nothing.
func TestPluginLock_Widened(t *testing.T) {
	h, eval, module := authored(t, "task", "")
	if code, err := h.PluginLock(t.Context(), eval, false, false); code != 0 || err != nil {
		t.Fatalf("lock: got %d, %v", code, err)
	}
	src := filepath.Join(filepath.Dir(eval), "src")
	swapText(t, filepath.Join(src, "plugin.toml"), "[capabilities]", "[capabilities]\nclock = { optional = true, why = \"w\" }")
	if code, err := h.PluginBuild(t.Context(), PluginBuildOptions{Dir: src, Output: module}, false); code != 0 || err != nil {
		t.Fatalf("build: got %d, %v", code, err)
	}
	ps, err := loadEval(t, eval)
	if err != nil {
		t.Fatal(err)
	}
	err = checkLock(t.Context(), eval, ps)
	if le, ok := errors.AsType[*plugin.LockError](err); !ok || !strings.Contains(le.Error(), "asks for more than was accepted: clock") {
		t.Errorf("got %v", err)
	}
	if code, err := h.PluginLock(t.Context(), eval, false, false); code != ExitUsage || err != nil {
		t.Errorf("without --accept: got %d, %v", code, err)
	}
	if code, err := h.PluginLock(t.Context(), eval, true, false); code != 0 || err != nil {
		t.Errorf("with --accept: got %d, %v", code, err)
	}
	if err := checkLock(t.Context(), eval, ps); err != nil {
		t.Errorf("accepted: got %v", err)
	}
}

func swapText(t *testing.T, file, was, now string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), was) {
		t.Fatalf("%s: %q is not there", file, was)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(b), was, now)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPluginInspect_Config(t *testing.T) {
	_, eval, module := authored(t, "rollout", "grant = { env = true }\n")
	h, out, _ := verbs()
	if err := h.PluginInspect(t.Context(), module, eval, true); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Name   string
		Grants []struct {
			Alias     string
			Effective []struct{ Capability, State string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Name != "mine" || len(got.Grants) != 1 || got.Grants[0].Effective[0].State != "granted" {
		t.Errorf("got %s, %v", out, err)
	}
	swapText(t, eval, "mine.wasm", "src")
	swapText(t, eval, "name = \"mine\"\nsource", "name = \"other\"\nsource")
	swapText(t, eval, "plugin = \"mine\"", "plugin = \"other\"")
	if err := h.PluginInspect(t.Context(), module, eval, true); err == nil || !strings.Contains(err.Error(), "there are: other") {
		t.Errorf("not in the file: got %v", err)
	}
}

func TestPluginVerbs_ExitCodes(t *testing.T) {
	h, out, errs := verbs()
	bad := filepath.Join(t.TempDir(), "bad.wasm")
	if err := os.WriteFile(bad, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, err := h.PluginCheck(bad, false); code != ExitUsage || err != nil || !strings.Contains(out.String(), "WV001 error") {
		t.Errorf("check: got %d, %v, %s", code, err, out)
	}
	if code, err := h.PluginConform(t.Context(), bad, false); code != ExitGate || err != nil {
		t.Errorf("conform: got %d, %v", code, err)
	}
	if _, err := h.PluginCheck(bad+"x", false); ExitCode(err) != ExitUsage {
		t.Errorf("check, no file: got %v", err)
	}
	if err := h.PluginInspect(t.Context(), bad, "", false); ExitCode(err) != ExitUsage {
		t.Errorf("inspect: got %v", err)
	}
	if err := h.PluginNew(PluginNewOptions{Name: "mine", Lang: "perl", Kind: "scorer"}, false); ExitCode(err) != ExitUsage {
		t.Errorf("new: got %v", err)
	}
	if _, err := h.PluginTest(t.Context(), PluginTestOptions{Dir: t.TempDir()}, false); ExitCode(err) != ExitUsage {
		t.Errorf("test: got %v", err)
	}
	if errs.Len() > 0 {
		t.Errorf("stderr: got %s", errs)
	}
}
