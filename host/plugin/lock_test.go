package plugin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
)

// lockOf writes and reads back the lock of one plugin.
func lockOf(t *testing.T, e *Engine, alias, source string) (*Lock, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), LockFile)
	entry, err := e.builder.Lock(context.Background(), filepath.Dir(file), alias, source)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Lock{Plugins: []Locked{entry}}).Write(file); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLock(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Find(alias); got == nil || !reflect.DeepEqual(*got, entry) {
		t.Fatalf("read back: got %+v want %+v", got, entry)
	}
	return l, file
}

func refusedByLock(t *testing.T, l *Lock, p *Plugin, want string) {
	t.Helper()
	err := l.Check(context.Background(), "wevalr.lock", "wevalr plugin lock eval.toml", []*Plugin{p})
	if want == "" {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	if le, ok := errors.AsType[*LockError](err); !ok || !strings.Contains(le.Error(), want) || !strings.Contains(le.Error(), "wevalr plugin lock eval.toml") {
		t.Errorf("got %v, want %q and the command", err, want)
	}
	if f := failure.Of(err); f.Source != failure.Config || f.Kind != "lock" {
		t.Errorf("failure: got %+v", f)
	}
}

func TestLock_Check_Module(t *testing.T) {
	e := newEngine(t)
	g := scoring(score("1"))
	path := source(t, g.Bytes())
	l, _ := lockOf(t, e, "mine", path)
	if got := l.Find("mine"); got.ABI != "1.0" || got.Tree != "" || got.Go != "" || len(got.Requests) != 0 || got.Size != len(g.Bytes()) {
		t.Errorf("got %+v", got)
	}
	loaded := load(t, e, Spec{Alias: "mine", Source: path})
	refusedByLock(t, l, loaded, "")
	refusedByLock(t, l, load(t, e, Spec{Alias: "other", Source: path}), "plugin other is not in the lock")

	// What was loaded counts, not what lies there by now.
	if err := os.WriteFile(path, scoring(score("0")).Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	refusedByLock(t, l, loaded, "")
	swapped := load(t, e, Spec{Alias: "mine", Source: path})
	refusedByLock(t, l, swapped, "plugin mine has changed: sha256 is "+swapped.SHA256()+", locked is "+loaded.SHA256())

	wider := scoring(score("1"))
	wider.Manifest = scorerManifest + "[capabilities]\nclock = { optional = true }\nvars = { names = [\"TZ\"], optional = true }\n"
	refusedByLock(t, l, load(t, e, Spec{Alias: "mine", Source: source(t, wider.Bytes())}),
		"plugin mine asks for more than was accepted: clock, vars=TZ")
}

func TestLock_Check_SourceFolder(t *testing.T) {
	needBuild(t)
	dir := sourceFolder(t)
	e := newEngine(t)
	l, _ := lockOf(t, e, "mine", dir)
	was := l.Find("mine")
	if was.Tree == "" || !strings.HasPrefix(was.Go, "go1") {
		t.Fatalf("got %+v", was)
	}
	// The folder's module answers nothing, so it cannot be loaded: what Check looks at is made by hand.
	at := func() *Plugin {
		built, err := e.builder.Build(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return &Plugin{engine: e, spec: Spec{Alias: "mine", Source: dir}, sha256: built.SHA256, manifest: built.Manifest}
	}
	refusedByLock(t, l, at(), "")
	sum := was.SHA256
	was.SHA256 = strings.Repeat("0", 64)
	refusedByLock(t, l, at(), "plugin mine has changed") // the same Go must make the same bytes
	was.Go = "go1.1"
	refusedByLock(t, l, at(), "") // another Go may make others of the same tree
	writeFile(t, dir, "answer/answer.go", "package answer\n\nfunc Of(op int32) int64 { return 2 }\n")
	refusedByLock(t, l, at(), "plugin mine has changed")
	was.SHA256, was.Go = sum, at().manifest.Name
	refusedByLock(t, l, at(), "plugin mine has changed")
}

func TestReadLock_Refusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), LockFile)
	if _, err := ReadLock(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	for text, want := range map[string]string{
		"lock = 2":                    "lock = 2 is unknown",
		"":                            "lock = 0 is unknown",
		"lock = ":                     "lock",
		"lock = 1\nmore = 1":          "unknown key more",
		"lock = 1\n[[plugin]]\nx = 1": "unknown key plugin.x",
		"lock = 1\n[[plugin]]\nname = \"a\"\n[[plugin]]\nname = \"a\"": `"a" stands there twice`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadLock(file)
		if le, ok := errors.AsType[*LockError](err); !ok || !strings.Contains(le.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if got := (&LockError{}).Error(); got == "" {
		t.Error("the zero error says nothing")
	}
}

func TestCapabilities_Requests(t *testing.T) {
	q := Capabilities{
		Env: &EnvCapability{Sampling: []string{"top_p", "temperature"}}, TaskEnv: &KeysCapability{Keys: []string{"image"}},
		FS: map[string]*Capability{"b": {}, "a": {}}, Vars: &NamesCapability{Names: []string{"TZ"}}, Clock: &Capability{}, Random: &Capability{},
	}
	want := "clock env env.sampling=temperature env.sampling=top_p fs.a fs.b random task_env=image vars=TZ"
	if got := strings.Join(q.Requests(), " "); got != want {
		t.Errorf("got %s want %s", got, want)
	}
	if got := (&Capabilities{}).Requests(); got == nil || len(got) != 0 {
		t.Errorf("nothing: got %#v", got)
	}
}

// An empty list of requests is written, so that a reader sees that nothing is asked for.
func TestLock_Write_Stable(t *testing.T) {
	dir := t.TempDir()
	a, b := Locked{Name: "a", Requests: []string{}}, Locked{Name: "b", Requests: []string{"clock"}}
	var texts [2]string
	for i, list := range [][]Locked{{a, b}, {b, a}} {
		file := filepath.Join(dir, LockFile)
		if err := (&Lock{Plugins: list}).Write(file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], "requests = []") || !strings.HasPrefix(texts[0], "# ") {
		t.Errorf("got %q and %q", texts[0], texts[1])
	}
}
