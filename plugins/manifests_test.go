package plugins_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/wevalr/wevalr/plugins/abi"
)

type manifest struct {
	Manifest int
	Name     string
	Version  string
	Provides []string
	Requires []string
	Encoding string
	Assets   []string
	Rollout  struct{ View []string }
	Scorer   []struct {
		Name, Kind     string
		Range          []float64
		Binary         bool
		HigherIsBetter bool `toml:"higher_is_better"`
		View           []string
	}
	Capabilities map[string]any
	Limits       struct {
		MemoryMiB int `toml:"memory_mib"`
	}
	Option []struct {
		Name, Type, Help string
		Default          any
	}
}

// The manifests say what the sources do: names, scorers, options with their types.
func TestManifests(t *testing.T) {
	getters := map[string]string{"string": "String", "int": "Int", "float": "Float", "bool": "Bool"}
	for dir := range modules() {
		var m manifest
		meta, err := toml.DecodeFile(filepath.Join(dir, "plugin.toml"), &m)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		for _, key := range meta.Undecoded() {
			if key[0] != "capabilities" {
				t.Errorf("%s: unknown key %s", dir, key)
			}
		}
		if m.Manifest != 1 || m.Name != filepath.Base(dir) || m.Encoding != abi.EncodingMsgpack || m.Limits.MemoryMiB < 16 || len(m.Provides) == 0 {
			t.Errorf("%s: got %+v", dir, m)
		}
		src, err := os.ReadFile(filepath.Join(dir, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		code := string(src)
		for _, s := range m.Scorer {
			if !strings.Contains(code, `"`+s.Name+`"`) && !strings.Contains(code, "`"+s.Name+"`") && s.Kind != "driver" {
				t.Errorf("%s: scorer %s is not in the source", dir, s.Name)
			}
			if len(s.Range) != 2 || s.Kind != "driver" && len(s.View) == 0 {
				t.Errorf("%s: scorer %s: got %+v", dir, s.Name, s)
			}
		}
		for _, o := range m.Option {
			if !strings.Contains(code, "o."+getters[o.Type]+`("`+o.Name+`", `) || o.Help == "" || o.Default == nil {
				t.Errorf("%s: option %s: not read as %s, or without help or default", dir, o.Name, o.Type)
			}
		}
		if got := strings.Count(code, "o.String(") + strings.Count(code, "o.Int(") + strings.Count(code, "o.Float(") + strings.Count(code, "o.Bool("); got != len(m.Option) {
			t.Errorf("%s: the source reads %d options, the manifest has %d", dir, got, len(m.Option))
		}
	}
}
