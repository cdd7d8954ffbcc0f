package author

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A new Go plugin gets the SDK of this repository, all of it and nothing of its tests.
func TestNew_GoSDK_IsTheRepositorys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "p")
	if _, err := New(NewSpec{Name: "my-scorer", Lang: "go", Kind: "scorer", Dir: dir}); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, src := range []string{"plugins/abi", "plugins/sdk"} {
		walk(t, filepath.Join(root, src), func(path string) {
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			want[rel] = true
			if got := read(t, filepath.Join(dir, "wevalr", rel)); got != read(t, path) {
				t.Errorf("%s is not as in the repository", rel)
			}
		})
	}
	walk(t, filepath.Join(dir, "wevalr", "plugins"), func(path string) {
		if rel, err := filepath.Rel(filepath.Join(dir, "wevalr"), path); err != nil || !want[rel] {
			t.Errorf("%s is copied and should not be (%v)", rel, err)
		}
	})
	if read(t, filepath.Join(dir, "wevalr", "LICENSE")) != read(t, filepath.Join(root, "LICENSE")) {
		t.Error("the license is another one")
	}
}

func walk(t *testing.T, dir string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			f(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := write(path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}
