package author

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newPlugin makes a plugin from a template, outside of the repository.
func newPlugin(t *testing.T, lang, kind string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "my-"+kind)
	got, err := New(NewSpec{Name: "my-" + kind, Lang: lang, Kind: kind, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Next) != 3 || got.Dir != dir {
		t.Errorf("got %+v", got)
	}
	return dir
}

// Each template passes its own test and has nothing to download.
func TestNew_Go_TestsPassOffline(t *testing.T) {
	needBuild(t)
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := newPlugin(t, "go", kind)
			for _, args := range [][]string{{"test", "./..."}, {"vet", "./..."}} {
				cmd := exec.Command("go", args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS=-mod=readonly")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
				}
			}
			if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("gofmt: %v\n%s", err, out)
			}
		})
	}
}

func TestNew_Refusals(t *testing.T) {
	full := t.TempDir()
	writeFile(t, filepath.Join(full, "x"), "")
	for want, s := range map[string]NewSpec{
		`name "My"`:               {Name: "My", Lang: "go", Kind: "scorer"},
		`name "../x"`:             {Name: "../x", Lang: "go", Kind: "scorer"},
		"--lang perl: unknown":    {Name: "mine", Lang: "perl", Kind: "scorer"},
		"--kind judge: unknown":   {Name: "mine", Lang: "go", Kind: "judge"},
		"the folder is not empty": {Name: "mine", Lang: "go", Kind: "scorer", Dir: full},
	} {
		_, err := New(s)
		if re, ok := errors.AsType[*RequestError](err); !ok || !strings.Contains(re.Error(), want) {
			t.Errorf("%+v: got %v, want %q", s, err, want)
		}
	}
	if got := (&RequestError{}).Error(); got == "" {
		t.Error("the zero error says nothing")
	}
}

// A language whose templates are missing says so; those that are there work.
func TestNew_EveryLanguageAndKind(t *testing.T) {
	for _, lang := range Langs() {
		for _, kind := range Kinds() {
			dir := filepath.Join(t.TempDir(), "p")
			c, err := New(NewSpec{Name: "mine", Lang: lang, Kind: kind, Dir: dir})
			if err != nil {
				if !strings.Contains(err.Error(), "not built yet") || !strings.Contains(err.Error(), "go-scorer") {
					t.Errorf("%s %s: got %v", lang, kind, err)
				}
				continue
			}
			var text bytes.Buffer
			if err := c.Text(&text); err != nil || !strings.Contains(text.String(), "wevalr plugin test "+dir) {
				t.Errorf("%s %s: got %q, %v", lang, kind, text.String(), err)
			}
			if strings.Contains(read(t, filepath.Join(dir, "plugin.toml")), placeholder) {
				t.Errorf("%s %s: the placeholder is left", lang, kind)
			}
		}
	}
}
