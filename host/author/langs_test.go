package author

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/plugin"
)

// Each template builds, passes its case and the conformance kit, where its toolchain is.
func TestNew_OtherLanguages(t *testing.T) {
	needBuild(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, name := range available() {
		lang, kind, _ := strings.Cut(name, "-")
		if lang == "go" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := newPlugin(t, lang, kind)
			file := filepath.Join(t.TempDir(), "p.wasm")
			built, err := MakeModule(context.Background(), BuildSpec{Dir: dir, Output: file, Verify: true})
			if b, ok := errors.AsType[*plugin.BuildError](err); ok && b.Step == "toolchain" {
				t.Skip(b.Error())
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range built.Check.Findings {
				if f.Severity != Note {
					t.Errorf("check: %s %s", f.Code, f.Message)
				}
			}
			if !built.Verified {
				t.Error("not verified")
			}
			got, err := Test(context.Background(), TestSpec{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			passed := 0
			for _, c := range got.Cases {
				if c.Status == Fail {
					t.Errorf("%s: %s", c.Name, c.Detail)
				} else if !c.Builtin && c.Status == Pass {
					passed++
				}
			}
			if passed == 0 {
				t.Error("no case of the template ran")
			}
			kit, err := Conform(context.Background(), file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range kit.Cases {
				if c.Status == Fail {
					t.Errorf("conformance: %s: %s", c.Name, c.Detail)
				}
			}
		})
	}
}
