package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testLoader knows two variables and a manifest's name.
func testLoader() Loader {
	return Loader{LookupEnv: func(name string) (string, bool) {
		return "", name == "SET_KEY" || name == "SET_TOKEN"
	}}
}

// minimal is the least that loads; tests add to it.
const minimal = `version = 1
name = "a"
[tasks]
plugin = "p"
[model]
name = "offline/echo"
[[plugin]]
name = "p"
source = "plug"
`

// dir is a folder with what eval files of the tests refer to.
func dir(t *testing.T) string {
	t.Helper()
	d := t.TempDir()
	for _, sub := range []string{"plug", "data"} {
		if err := os.Mkdir(filepath.Join(d, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func write1(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, text string, set ...Override) *Config {
	t.Helper()
	c, err := testLoader().Load(write1(t, filepath.Join(dir(t), "eval.toml"), text), set)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

// same compares what two configs say, not where it came from.
func same(a, b *Config) bool {
	x, y := *a, *b
	x.origins, y.origins = origins{}, origins{}
	return reflect.DeepEqual(x, y)
}

func TestLoad_Full_EveryKey(t *testing.T) {
	c, err := testLoader().Load("testdata/full.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	abs, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	five, sixty := 5.0, 60.5
	want := &Config{
		Version: 1, Name: "gsm8k-smoke",
		Tasks: Tasks{Plugin: "gsm8k", NumTasks: 100, NumRollouts: 4, Shuffle: true, Seed: 7},
		Score: []Score{
			{Plugin: "gsm8k", Scorer: "flexible", Options: map[string]any{
				"marker": "#### ", "weights": []any{int64(1), 2.5, map[string]any{"a": true}},
				"deep": map[string]any{"er": map[string]any{"x": "y"}},
			}},
			{Plugin: "match"},
		},
		Rollout: Rollout{Plugin: "best-of-n"},
		Model: Model{
			Name: "openai/gpt-4.1-mini",
			Client: Client{
				Type: "train", BaseURL: "https://example.test/v1", APIKeyVar: "SET_KEY",
				Headers: map[string]string{"X-Org": "acme"}, HeadersFromEnv: map[string]string{"X-Token": "SET_TOKEN"},
				Timeout: ClientTimeout{Connect: &five, Read: &sixty}, Renderer: map[string]any{"name": "default"},
				RendererModel: "x/y", Multiplex: 16,
			},
			Sampling: map[string]any{
				"temperature": 0.7, "max_tokens": int64(1024), "seed": int64(3), "stop": []any{"\n\n"},
				"extra_body": map[string]any{"top_k": int64(20)},
			},
			MaxRetries: 3,
		},
		Prompt: Prompt{System: "Be \"brief\".\n", Template: "{{prompt}}\nAnswer with a number."},
		Server: Server{
			Command: []string{"python", "serve.py", "--address={address}"}, Env: []string{"SET_KEY", "SET_TOKEN"},
			Cwd: filepath.Join(abs, "data"), Transport: "tcp", Instances: 2, StartTimeout: 90 * time.Second, Warm: "off",
			OnExit: "restart", MaxRestarts: 1, RestartWindow: 90 * time.Minute, OnWorkerExit: "warn",
			SuspectAfter: 5 * time.Second, StallAfter: 10 * time.Minute, FirstReply: 2 * time.Minute,
			CancelGrace: time.Second, StopGrace: 1500 * time.Millisecond, Settle: 3 * time.Second,
			Containment: "group", ReplyMaxMiB: 64,
		},
		Run: Run{MaxConcurrent: 8, MaxErrorRate: 0.1, Retries: 2, FailFast: true, MinCoverage: 1, InstanceMiB: 512, ReplyBudgetMiB: 128},
		Plugins: []Plugin{
			{
				Name: "gsm8k", Source: filepath.Join(abs, "plug"), Options: map[string]any{"marker": "#### "},
				Grant: Grant{
					FS: map[string]string{"dataset": filepath.Join(abs, "data")}, Clock: true, Random: true,
					Vars: []string{"SPLIT"}, TaskEnv: []string{"image"},
				},
				Limits: Limits{MemoryMiB: 64, Fuel: 2_000_000_000},
			},
			{Name: "match", Source: filepath.Join(abs, "plug")},
			{
				Name: "best-of-n", Source: filepath.Join(abs, "plug"),
				Grant: Grant{Env: &EnvGrant{Sampling: []string{"temperature"}}, FS: map[string]string{"a.b": filepath.Join(abs, "data")}},
			},
		},
	}
	if !same(c, want) {
		t.Errorf("got\n%s\nwant\n%s", c.TOML(), want.TOML())
	}
	again := write1(t, filepath.Join(t.TempDir(), "config.toml"), string(c.TOML()))
	c2, err := testLoader().Load(again, nil)
	if err != nil {
		t.Fatalf("the resolved form does not load: %v\n%s", err, c.TOML())
	}
	if !same(c, c2) || string(c.TOML()) != string(c2.TOML()) || c.ResultDigest() != c2.ResultDigest() {
		t.Errorf("round trip: got\n%s\nwant\n%s", c2.TOML(), c.TOML())
	}
}

func TestLoad_Minimal_Defaults(t *testing.T) {
	c := load(t, minimal)
	got := c.Server
	want := Server{
		Cwd: filepath.Dir(c.Plugins[0].Source), Transport: "ipc", Instances: 1, StartTimeout: 600 * time.Second, Warm: "auto",
		OnExit: "fail", MaxRestarts: 5, RestartWindow: 10 * time.Minute, OnWorkerExit: "auto", SuspectAfter: time.Minute,
		CancelGrace: 10 * time.Second, StopGrace: 30 * time.Second, DrainLimit: 2 * time.Second, Settle: 2 * time.Second,
		Containment: "auto", ReplyMaxMiB: 1024,
	}
	if !reflect.DeepEqual(got, want) || got.Kind() != Embedded {
		t.Errorf("server: got %+v want %+v", got, want)
	}
	if want := (Run{MaxConcurrent: 128, MinCoverage: 0.95, InstanceMiB: 1024, ReplyBudgetMiB: 2048}); c.Run != want {
		t.Errorf("run: got %+v want %+v", c.Run, want)
	}
	if c.Tasks.NumRollouts != 1 || c.Tasks.NumTasks != 0 || c.Model.MaxRetries != 2 || c.Model.Client.Type != "eval" {
		t.Errorf("got %+v %+v", c.Tasks, c.Model)
	}
}

func TestLoad_Precedence_FlagOverFileOverDefault(t *testing.T) {
	text := minimal + "options = { a = 1 }\n[run]\nmax_concurrent = 4\nretries = 1\n"
	set, err := ParseSet(`plugin.p.options.x = "y"`)
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, text, Flag("-c", 9), set, Flag("-m", "offline/demo"))
	file := strings.TrimSuffix(c.Origin("version"), ":1")
	for key, want := range map[string][2]string{
		"run.max_concurrent":   {"9", "flag -c"},
		"run.retries":          {"1", file + ":13"},
		"run.instance_mib":     {"1024", "default"},
		"model.name":           {`"offline/demo"`, "flag -m"},
		"plugin.p.options.x":   {`"y"`, "--set plugin.p.options.x"},
		"plugin.p.options.a":   {"1", file + ":10"},
		"server.cwd":           {quote(filepath.Dir(file)), "default"},
		"tasks.num_rollouts":   {"1", "default"},
		"model.client.type":    {`"eval"`, "default"},
		"server.stall_after":   {`"off"`, "default"},
		"server.start_timeout": {`"10m"`, "default"},
	} {
		var got [2]string
		for _, e := range c.Entries() {
			if e.Key == key {
				got = [2]string{e.Value, e.Origin}
			}
		}
		if got != want {
			t.Errorf("%s: got %q want %q", key, got, want)
		}
	}
	if got, want := c.Origin("plugin.0.options.x"), "--set plugin.p.options.x"; got != want {
		t.Errorf("by index: got %q want %q", got, want)
	}
}

func TestLoader_ManifestName_IsTheDefaultAlias(t *testing.T) {
	text := strings.Replace(minimal, `name = "p"`, "", 1)
	path := write1(t, filepath.Join(dir(t), "eval.toml"), text)
	l := testLoader()
	l.ManifestName = func(source string) (string, error) {
		if filepath.Base(source) != "plug" || !filepath.IsAbs(source) {
			t.Errorf("asked for %q", source)
		}
		return "p", nil
	}
	c, err := l.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Plugin("p") == nil || c.Origin("plugin.p.name") != "default" {
		t.Errorf("got %+v from %s", c.Plugins, c.Origin("plugin.p.name"))
	}
	l.ManifestName = func(string) (string, error) { return "", errors.New("no manifest") }
	if _, err := l.Load(path, nil); err == nil || !strings.Contains(err.Error(), "no manifest") {
		t.Errorf("got %v", err)
	}
}

func TestLoadServe_Model_RoundTrips(t *testing.T) {
	d := dir(t)
	write1(t, filepath.Join(d, "c.jsonl"), "{}\n")
	path := write1(t, filepath.Join(d, "serve.toml"), "[model]\nname = \"offline/replay\"\noptions.file = \"c.jsonl\"\n")
	m, err := testLoader().LoadServe(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(d, "c.jsonl"); m.Options.File != want {
		t.Errorf("file: got %q want %q", m.Options.File, want)
	}
	again, err := testLoader().LoadServe(write1(t, filepath.Join(t.TempDir(), "s.toml"), string(m.TOML())), nil)
	if err != nil || !reflect.DeepEqual(m, again) {
		t.Errorf("got %+v, %v want %+v", again, err, m)
	}
	_, err = testLoader().LoadServe(write1(t, path, "[model]\nname = \"x\"\n[run]\nretries = 1\n"), nil)
	var all Errors
	if !errors.As(err, &all) || len(all) != 2 || all[0].Key != "model.client.base_url" || all[1].Key != "run" || all[1].Line != 3 {
		t.Errorf("got %v", err)
	}
}

func TestLoad_Unreadable_OneErrorWithoutLine(t *testing.T) {
	var e *Error
	for _, path := range []string{filepath.Join(t.TempDir(), "none.toml"), t.TempDir()} {
		if _, err := Load(path, nil); !errors.As(err, &e) || e.Line != 0 || e.File != path {
			t.Errorf("%s: got %v", path, err)
		}
	}
	big := write1(t, filepath.Join(t.TempDir(), "big.toml"), strings.Repeat("#", maxFileBytes+1))
	if _, err := Load(big, nil); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestError_ZeroValue_Total(t *testing.T) {
	var nilErr *Error
	for _, err := range []error{&Error{}, nilErr, Errors(nil), Errors{{}}} {
		if err.Error() == "" {
			t.Errorf("%#v has no text", err)
		}
	}
	if f := (Errors{{Msg: "100%"}}).Failure(); f.Source != "config" || f.Kind != "invalid" || !strings.Contains(f.Message, "100%") {
		t.Errorf("got %+v", f)
	}
}

func TestClient_Wire_OnlyWhatIsGiven(t *testing.T) {
	c := &Client{Type: "eval"}
	if got, want := c.Wire(), map[string]any{"type": "eval"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v want %v", got, want)
	}
	full, err := testLoader().Load("testdata/full.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "train", "base_url": "https://example.test/v1", "api_key_var": "SET_KEY",
		"headers": map[string]any{"X-Org": "acme"}, "headers_from_env": map[string]any{"X-Token": "SET_TOKEN"},
		"timeout": map[string]any{"connect": 5.0, "read": 60.5}, "renderer": map[string]any{"name": "default"},
		"renderer_model_name": "x/y", "multiplex": int64(16),
	}
	if got := full.Model.Client.Wire(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v want %v", got, want)
	}
}
