package plugins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
)

// modules are the guests in Go, with the imports of wevalr_v1 that each may have.
func modules() map[string][]string {
	base := []string{"fail"}
	return map[string][]string{
		"arith":                     base,
		"gsm8k":                     base,
		"jsonl":                     base,
		"exact-match":               base,
		"ifeval":                    base,
		"json-schema":               base,
		"multiple-choice":           base,
		"numeric":                   base,
		"regex":                     base,
		"../testplugins/best-of-n":  {"env_await", "env_close", "env_poll", "env_start", "env_take", "fail", "log", "log_enabled"},
		"../testplugins/conform-go": {"asset_len", "asset_read", "env_await", "env_cancel", "env_close", "env_poll", "env_start", "env_take", "fail", "log", "log_enabled"},
	}
}

// A plugin links what it uses and nothing else (an import that the manifest does not ask for is
// refused), with the signatures of abi.wat.
func TestModules_ImportsAndExports(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the plugins for wasip1")
	}
	wat, err := os.ReadFile("abi/abi.wat")
	if err != nil {
		t.Fatal(err)
	}
	want := normative(t, string(wat))
	for dir, imports := range modules() {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			got := readModule(t, build(t, dir))
			var names []string
			for name, sig := range got.imports {
				names = append(names, name)
				if sig != want.imports[name] {
					t.Errorf("import %s: got %q want %q", name, sig, want.imports[name])
				}
			}
			slices.Sort(names)
			if !slices.Equal(names, imports) {
				t.Errorf("imports: got %q want %q", names, imports)
			}
			for _, name := range []string{abi.Marker, abi.ExportBuf, abi.ExportCall, abi.ExportInitialize} {
				sig, ok := got.exports[name]
				if !ok || sig != want.exports[name] {
					t.Errorf("export %s: got %q (there: %v) want %q", name, sig, ok, want.exports[name])
				}
			}
		})
	}
}

func build(t *testing.T, dir string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "m.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, b)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// module is a module's border: name → signature, such as "i32 i32 -> i32".
type module struct{ imports, exports map[string]string }

// normative reads the signatures of abi.wat.
func normative(t *testing.T, wat string) module {
	t.Helper()
	m := module{imports: map[string]string{}, exports: map[string]string{}}
	sig := func(s string) string {
		var in, out []string
		for _, p := range regexp.MustCompile(`\((param \$\w+|result) (i32|i64)\)`).FindAllStringSubmatch(s, -1) {
			if p[1] == "result" {
				out = append(out, p[2])
			} else {
				in = append(in, p[2])
			}
		}
		return strings.Join(in, " ") + " -> " + strings.Join(out, " ")
	}
	for _, f := range regexp.MustCompile(`(?s)\(import "`+abi.Module+`" "(\w+)"\s+\(func(.*?)\)\)\n`).FindAllStringSubmatch(wat, -1) {
		m.imports[f[1]] = sig(f[2] + ")")
	}
	for _, f := range regexp.MustCompile(`\(func \(export "(\w+)"\)(.*)\n`).FindAllStringSubmatch(wat, -1) {
		m.exports[f[1]] = sig(f[2])
	}
	if len(m.imports) != 11 || len(m.exports) != 4 {
		t.Fatalf("abi.wat: got %d imports and %d exports, want 11 and 4", len(m.imports), len(m.exports))
	}
	return m
}

// wasm reads the few sections of a module that its border is written in.
type wasm struct{ b []byte }

func readModule(t *testing.T, b []byte) module {
	t.Helper()
	m := module{imports: map[string]string{}, exports: map[string]string{}}
	var types []string
	var funcs []int // type of each function, imported ones first
	r := &wasm{b[8:]}
	for len(r.b) > 0 {
		id := r.u()
		s := &wasm{r.take(r.u())}
		switch id {
		case 1:
			for range s.u() {
				s.take(1)
				types = append(types, s.types()+" -> "+s.types())
			}
		case 2:
			for range s.u() {
				mod, name := s.name(), s.name()
				s.take(1) // functions are all that Go imports
				ty := s.u()
				funcs = append(funcs, ty)
				if mod == abi.Module {
					m.imports[name] = types[ty]
				}
			}
		case 3:
			for range s.u() {
				funcs = append(funcs, s.u())
			}
		case 7:
			for range s.u() {
				name, kind, index := s.name(), s.u(), s.u()
				if kind == 0 {
					m.exports[name] = types[funcs[index]]
				}
			}
		}
	}
	return m
}

func (w *wasm) take(n int) []byte {
	b := w.b[:n]
	w.b = w.b[n:]
	return b
}

func (w *wasm) u() (v int) {
	for shift := 0; ; shift += 7 {
		c := w.take(1)[0]
		v |= int(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
}

func (w *wasm) name() string { return string(w.take(w.u())) }

func (w *wasm) types() string {
	var s []string
	for range w.u() {
		s = append(s, map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64"}[w.take(1)[0]])
	}
	return strings.Join(s, " ")
}
