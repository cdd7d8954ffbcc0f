package author

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/plugin"
)

// conformModule is the plugin that asks for and has everything.
func conformModule(t *testing.T) []byte {
	t.Helper()
	needBuild(t)
	return module(t, filepath.Join(root, "testplugins/conform-go"))
}

func TestInspect_JSON(t *testing.T) {
	d, err := Inspect("m.wasm", conformModule(t))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	keys := strings.Join(sortedKeys(got), " ")
	if keys != "abi name options provides requests scorers sha256 size version" {
		t.Errorf("keys: got %s", keys)
	}
	want := []any{
		map[string]any{"capability": "env", "optional": true, "why": "drives rollouts"},
		map[string]any{"capability": "env.sampling", "names": []any{"temperature"}, "optional": true, "why": "drives rollouts"},
		map[string]any{"capability": "fs.dataset", "optional": true, "why": "reads hello.txt"},
	}
	if !reflect.DeepEqual(got["requests"], want) {
		t.Errorf("requests: got %v", got["requests"])
	}
	first := got["options"].([]any)[0]
	if !reflect.DeepEqual(first, map[string]any{"name": "tasks", "type": "int", "default": 3.0, "help": "how many tasks there are"}) {
		t.Errorf("option: got %v", first)
	}
	if s := d.Scorers[3]; s.Name != "spread" || s.Kind != "group" || s.HigherIsBetter || !slices.Equal(s.View, []string{"completion"}) {
		t.Errorf("scorer: got %+v", s)
	}
	d.AddGrants("mine", plugin.Grants{FS: map[string]string{"dataset": "/d"}, Clock: true}, nil)
	var text bytes.Buffer
	if err := d.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"conform-go 1.0.0", "env.sampling temperature (optional): drives rollouts", "fs.dataset: granted /d", "env: denied",
		"clock: granted, but not asked for", `option greeting`, "lower is better",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
}

// What inspect says of grants is what loading makes of them.
func TestDescription_AddGrants_AsTheEngine(t *testing.T) {
	needBuild(t)
	e, err := plugin.NewEngine(plugin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(t.Context()) }()
	dataset := t.TempDir()
	mods := map[string][]byte{"conform": conformModule(t), "rollout": module(t, newPlugin(t, "go", "rollout"))}
	for _, g := range []plugin.Grants{
		{},
		{Env: &plugin.EnvGrant{}},
		{Env: &plugin.EnvGrant{Sampling: []string{"temperature"}}},
		{Env: &plugin.EnvGrant{Sampling: []string{"top_p"}}},
		{FS: map[string]string{"dataset": dataset}},
		{FS: map[string]string{"other": dataset}},
		{Clock: true},
		{Random: true},
		{Vars: []string{"TZ"}},
		{TaskEnv: []string{"image"}},
	} {
		for name, b := range mods {
			d, err := Inspect("m.wasm", b)
			if err != nil {
				t.Fatal(err)
			}
			d.AddGrants("m", g, nil)
			got := d.Grants[0]
			refused := len(got.NotRequested) > 0 || slices.ContainsFunc(got.Effective, func(e EffectiveGrant) bool { return e.State == StateMissing })
			p, err := e.Load(t.Context(), plugin.Spec{Source: onDisk(t, b), Grants: g})
			if refused != (err != nil) {
				t.Errorf("%s with %+v: inspect says %+v, loading %v", name, g, got, err)
			}
			if err != nil {
				continue
			}
			for _, x := range got.Effective {
				names, ok := granted(p.Effective(), x.Capability)
				if has := ok && (len(x.Names) > 0 || x.Capability == "env" || x.Path != ""); has != (x.State == StateGranted) || !slices.Equal(names, x.Names) {
					t.Errorf("%s with %+v: inspect says %+v, loading %+v", name, g, x, p.Effective())
				}
			}
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}
