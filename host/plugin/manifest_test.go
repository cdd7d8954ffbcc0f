package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
)

const fullManifest = `manifest = 1
name     = "my-math"
version  = "0.3.0"
provides = ["task/v1", "rollout/v1", "scorer/v1"]
assets   = ["data/*.jsonl"]
[rollout]
view = ["completion"]
[[scorer]]
name   = "correct"
range  = [0, 1]
binary = true
higher_is_better = true
view   = ["completion"]
[capabilities]
env        = { methods = ["run"], sampling = ["temperature"], optional = true, why = "drives" }
task_env   = { keys = ["image"], optional = true, why = "container" }
fs.dataset = { why = "reads" }
vars       = { names = ["SPLIT"], optional = true }
clock      = { optional = true }
random     = { optional = true }
[limits]
memory_mib = 64
fuel       = "2G"
[[option]]
name    = "split"
type    = "string"
default = "test"
[[option]]
name    = "rate"
type    = "float"
default = 1
[[option]]
name    = "words"
type    = "strings"
default = ["a"]
[[option]]
name    = "file"
type    = "string"
`

func TestParseManifest_Canonical(t *testing.T) {
	m, err := ParseManifest("plugin.toml", []byte(fullManifest))
	if err != nil {
		t.Fatal(err)
	}
	once, err := m.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseManifest("section", once)
	if err != nil {
		t.Fatalf("%v\n%s", err, once)
	}
	twice, err := back.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if string(once) != string(twice) || !reflect.DeepEqual(m, back) {
		t.Errorf("canonical form is not a fixed point:\n%s\n%s", once, twice)
	}
}

func TestParseManifest_AllProblems(t *testing.T) {
	_, err := ParseManifest("plugin.toml", []byte(`manifest = 1
name = "A"
version = "1"
provides = ["task/v2", "rollout/v1"]
requires = ["teleport"]
encoding = "xml"
assets = ["/etc/*"]
surprise = 1
[[scorer]]
name = "s s"
kind = "magic"
range = [1, 0]
view = ["everything"]
[[scorer]]
name = "b"
kind = "group"
binary = true
range = [0.5, 1]
[capabilities]
model = { max_calls = 1 }
env = { methods = ["kill"] }
task_env = { keys = ["prompt"] }
vars = { names = [] }
fs.Bad = {}
[limits]
memory_mib = 5000
fuel = "2 gallons"
isolation = "maybe"
[[option]]
name = "n"
type = "int"
default = "five"
[[option]]
name = "n"
type = "decimal"
`))
	var m *ManifestError
	if !errors.As(err, &m) {
		t.Fatalf("got %T %v, want a ManifestError", err, err)
	}
	text := strings.Join(m.Problems, "\n")
	for _, want := range []string{
		`name: "A"`, `version: "1"`, `unknown "task/v2"`, `no feature "teleport"`, `unknown "xml"`, `"/etc/*": must be`,
		"unknown key surprise", `bad name "s s"`, `unknown "magic"`, "[1, 0] is empty", `unknown "everything"`,
		`needs provides = ["group-scorer/v1"]`, "does not hold 0 and 1", "unknown key capabilities.model", `unknown "kill"`,
		`unknown "prompt"`, "names is empty", `bad name "Bad"`, "5000", `"2 gallons"`, `unknown "maybe"`, "option n: default: want int",
		`unknown type "decimal"`, `"n" given twice`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not among the problems:\n%s", want, text)
		}
	}
}

func TestParseManifest_ManyScorers(t *testing.T) {
	var b strings.Builder
	b.WriteString(fullManifest)
	for i := range abi.MaxScores {
		fmt.Fprintf(&b, "[[scorer]]\nname = \"n%d\"\n", i)
	}
	if _, err := ParseManifest("f", []byte(b.String())); err == nil || !strings.Contains(err.Error(), " scorers, 256 at most") {
		t.Errorf("got %.300v", err)
	}
}

// A manifest may be wrong in more places than anybody reads.
func TestParseManifest_ManyProblems(t *testing.T) {
	var b strings.Builder
	b.WriteString("manifest = 1\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "surprise%d = 1\n", i)
	}
	_, err := ParseManifest("f", []byte(b.String()))
	if text := fmt.Sprint(err); err == nil || len(text) > 8<<10 || !strings.Contains(text, "surprise0") || !strings.HasSuffix(text, " more") {
		t.Errorf("got %d bytes, %.300s", len(text), text)
	}
}

func TestParseManifest_UnknownVersion(t *testing.T) {
	_, err := ParseManifest("f", []byte("manifest = 2\nnew_key = 1\n"))
	if err == nil || !strings.Contains(err.Error(), "manifest = 2 is unknown") || strings.Contains(err.Error(), "new_key") {
		t.Errorf("got %v", err)
	}
}

func TestEffective(t *testing.T) {
	m, err := ParseManifest("f", []byte(fullManifest))
	if err != nil {
		t.Fatal(err)
	}
	q := m.Capabilities
	all := Grants{
		Env: &EnvGrant{Sampling: []string{"temperature"}}, FS: map[string]string{"dataset": "/d"}, Vars: []string{"SPLIT"},
		Clock: true, Random: true, TaskEnv: []string{"image"},
	}
	got, err := effective("a", &q, all)
	if err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("got %+v, %v, want everything", got, err)
	}
	least, err := effective("a", &q, Grants{FS: map[string]string{"dataset": "/d"}})
	if err != nil || least.Env != nil || least.Clock || least.Random || least.Vars != nil || least.TaskEnv != nil {
		t.Errorf("got %+v, %v, want the folder only", least, err)
	}
	_, err = effective("a", &Capabilities{}, all)
	wantProblems(t, err, 6, "env: granted", "fs.dataset: granted", "vars: granted", "clock: granted", "random: granted", "task_env: granted")

	must := q
	must.Env = &EnvCapability{Sampling: []string{"temperature"}, Why: "drives"}
	must.Clock, must.Random = &Capability{}, &Capability{}
	must.Vars, must.TaskEnv = &NamesCapability{Names: []string{"SPLIT"}}, &KeysCapability{Keys: []string{"image"}}
	_, err = effective("a", &must, Grants{})
	wantProblems(t, err, 6, `grant = { env = { sampling = ["temperature"] } }`, `grant = { fs.dataset = "path/of/a/folder" }`,
		`grant = { vars = ["SPLIT"] }`, "grant = { clock = true }", "grant = { random = true }", `grant = { task_env = ["image"] }`, "it says why: drives")
	_, err = effective("a", &must, Grants{
		Env: &EnvGrant{}, FS: all.FS, Vars: []string{"SPLIT", "HOME"}, Clock: true, Random: true, TaskEnv: all.TaskEnv,
	})
	wantProblems(t, err, 2, "sets sampling keys (temperature)", `"HOME" is granted`)
}

func wantProblems(t *testing.T, err error, n int, texts ...string) {
	t.Helper()
	var g *GrantError
	if !errors.As(err, &g) {
		t.Fatalf("got %v, want a GrantError", err)
	}
	if len(g.Problems) != n {
		t.Errorf("%d problems, want %d: %v", len(g.Problems), n, err)
	}
	for _, w := range texts {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is missing in %v", w, err)
		}
	}
}

func TestResolveOptions(t *testing.T) {
	m, err := ParseManifest("f", []byte(fullManifest))
	if err != nil {
		t.Fatal(err)
	}
	got, err := resolveOptions("a", m.Options, map[string]any{"file": "x", "rate": int64(2), "words": []any{"b", "c"}})
	want := map[string]any{"split": "test", "file": "x", "rate": 2.0, "words": []string{"b", "c"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	_, err = resolveOptions("a", m.Options, map[string]any{"rate": "fast", "typo": 1, "words": []any{1}})
	var o *OptionError
	if !errors.As(err, &o) || len(o.Problems) != 4 {
		t.Fatalf("got %v, want four problems", err)
	}
	for _, w := range []string{"rate: want float", "typo: unknown option, there are: split, rate, words, file", "words: want strings", "file: must be set"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is missing in %v", w, err)
		}
	}
}

func TestParseFuel(t *testing.T) {
	for s, want := range map[string]uint64{"": 0, "5": 5, "2K": 2000, "3M": 3e6, "2G": 2e9} {
		if got, err := ParseFuel(s); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"0", "-1", "G", "2g", "99999999999G"} {
		if got, err := ParseFuel(s); err == nil {
			t.Errorf("%q: got %d, want an error", s, got)
		}
	}
}

func TestAssets_RoundTrip(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b.txt": "B", "a.txt": "", "c.md": "no"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := collectAssets(os.DirFS(dir), []string{"*.txt", "b.*"})
	if err != nil || len(a) != 2 {
		t.Fatalf("got %v, %v", a, err)
	}
	b := encodeAssets(a)
	back, err := decodeAssets(b)
	if err != nil || string(back["b.txt"]) != "B" || len(back) != 2 {
		t.Errorf("got %v, %v", back, err)
	}
	for n := 1; n < len(b); n++ {
		if got, err := decodeAssets(b[:n]); err == nil && len(got) == 2 {
			t.Errorf("cut at %d: got %v", n, got)
		}
	}
	if _, err := collectAssets(os.DirFS(dir), []string{"*.csv"}); err == nil {
		t.Error("a pattern without a match is fine, want an error")
	}
}

func FuzzParseModule(f *testing.F) {
	f.Add((&guest{}).Bytes())
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x02\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = Inspect("f", b)
	})
}

func FuzzDecodeEnvelope(f *testing.F) {
	f.Add([]byte(score("1")), true)
	f.Add([]byte("\x81\xa2ok\x81\xa6scores\x90"), false)
	f.Fuzz(func(_ *testing.T, b []byte, asJSON bool) {
		enc := map[bool]string{true: "json", false: "msgpack"}[asJSON]
		e, err := decodeEnvelope(enc, b)
		if err == nil && e.err == nil {
			var page struct{ Tasks []map[string]any }
			_ = decode(enc, e.ok, &page)
		}
	})
}
