package author

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

const plainManifest = `manifest = 1
name = "mm"
version = "1.0.0"
provides = ["task/v1"]
`

// Each refusal has its own code and text.
func TestCheck_Refusals(t *testing.T) {
	good := scorerModule(t)
	drives := module(t, newPlugin(t, "go", "rollout"))
	for _, c := range []struct {
		name       string
		b          []byte
		code, want string
	}{
		{"no wasm", []byte("hello"), "WV001", "not a WebAssembly module"},
		{"damaged", good[:len(good)/2], "WV001", "unexpected end"},
		{"older abi", swap(t, good, "wevalr_abi_1_0", "wevalr_abi_0_9"), "WV002", "needs ABI 0.9, this wevalr has 1.0\nrebuild the plugin"},
		{"newer abi", swap(t, good, "wevalr_abi_1_0", "wevalr_abi_1_4"), "WV002", "needs ABI 1.4, this wevalr has 1.0\nuse a newer wevalr"},
		{"no marker", swap(t, good, "wevalr_abi_1_0", "wevalr_ABI_1_0"), "WV002", "no marker"},
		{"undeclared import", withManifest(t, drives, plainManifest), "WV003", "needs the capability env, which the manifest does not declare"},
		{"unknown import", swap(t, drives, "env_start", "env_stort"), "WV003", "env_stort is not in ABI 1.0"},
		{"memory", withManifest(t, withSection(t, good, 5, []byte{1, 0, 0x80, 0x20}), plainManifest), "WV005", "starts with 256 MiB, its limit is 64 MiB"},
		{"no manifest", without(t, good, abi.SectionManifest), "WV006", "no custom section wevalr.manifest\nbuild it with: wevalr plugin build"},
		{"foreign manifest", swap(t, good, "manifest = 1\n", "manifest = 7\n"), "WV007", "manifest = 7 is unknown, this wevalr reads manifest = 1"},
		{"manifest", withManifest(t, good, plainManifest+"colour = 1\nencoding = \"xml\"\n"), "WV007", "unknown key colour"},
		{"assets", custom(good, abi.SectionAssets, "\x09"), "WV008", "section wevalr.assets"},
		{"export", swap(t, good, "wevalr_buf", "wevalr_bug"), "WV009", "wevalr_buf is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Check("m.wasm", c.b)
			if !r.Refused || !has(r, c.code, Error, c.want) {
				t.Errorf("got %+v, want %s %q", r, c.code, c.want)
			}
			if _, err := Inspect("m.wasm", c.b); err == nil && !slices.Contains([]string{"WV005", "WV009"}, c.code) {
				t.Error("inspect takes it")
			}
			// What is refused here is refused by a run, too.
			e, err := plugin.NewEngine(plugin.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close(t.Context()) }()
			if p, err := e.Load(t.Context(), plugin.Spec{Source: onDisk(t, c.b)}); err == nil {
				_ = p.Close(t.Context())
				t.Error("the engine loads it")
			}
		})
	}
}

func has(r *Report, code, severity, text string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool {
		return f.Code == code && f.Severity == severity && strings.Contains(f.Message, text)
	})
}

func TestCheck_Advice(t *testing.T) {
	good := scorerModule(t)
	all := plainManifest + `provides = ["task/v1", "rollout/v1", "scorer/v1"]
[capabilities]
env = {}
clock = { optional = true, why = "w" }
[limits]
memory_mib = 128
[[scorer]]
name = "s"
[[option]]
name = "o"
type = "int"
`
	all = strings.Replace(all, "provides = [\"task/v1\"]\n", "", 1)
	big := withSection(t, good, 5, []byte{1, 0, 0x80, 0x0c}) // 96 MiB
	r := Check("m.wasm", custom(withManifest(t, big, all), "name", "\x00"))
	for _, want := range []struct{ code, severity, text string }{
		{"WV101", Warning, "starts with 96 MiB"},
		{"WV102", Warning, "capability env is asked for, but the module imports nothing that calls the env-server"},
		{"WV103", Note, "entropy is imported"},
		{"WV104", Warning, "debug build"},
		{"WV105", Warning, "capability env: no why"},
		{"WV106", Note, "scorer s: no range"},
		{"WV107", Warning, "option o: no help"},
	} {
		if !has(r, want.code, want.severity, want.text) {
			t.Errorf("got %+v, want %+v", r.Findings, want)
		}
	}
	if r.Refused || slices.ContainsFunc(r.Findings, func(f Finding) bool { return strings.Contains(f.Message, "clock is imported") }) {
		t.Errorf("got %+v", r)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "m.wasm: accepted, 7 findings\n") {
		t.Errorf("got %q, %v", text.String(), err)
	}
	if r := Check("m.wasm", good); r.Refused || len(r.Findings) != 2 {
		t.Errorf("the template: got %+v", r)
	}
}

func FuzzReadWasm(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x05\x01\x01a\x00\x00"))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x02\x0b\x01\x01a\x01b\x02\x01\x01\x02"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if w, err := readWasm(b); err == nil && w == nil || err != nil && !errors.Is(err, errDamaged) {
			t.Errorf("got %v, %v", w, err)
		}
	})
}
