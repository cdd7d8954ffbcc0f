package author

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The SDK that plugin new copies is the one of this repository. After a change of it:
//
//	go test ./host/author -run SDKCopy -update
func TestSDKCopy_IsTheRepositorys(t *testing.T) {
	const copied = "templates/go-sdk/wevalr"
	want := map[string]string{"LICENSE": read(t, filepath.Join(root, "LICENSE")), "go.mod": "module github.com/wevalr/wevalr\n\ngo 1.26\n"}
	for _, dir := range []string{"plugins/abi", "plugins/sdk"} {
		walk(t, filepath.Join(root, dir), func(path string) {
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				rel, err := filepath.Rel(root, path)
				if err != nil {
					t.Fatal(err)
				}
				want[filepath.ToSlash(rel)] = read(t, path)
			}
		})
	}
	if *update {
		if err := os.RemoveAll(copied); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			write(t, filepath.Join(copied, name+suffix), text)
		}
	}
	got := map[string]bool{}
	walk(t, copied, func(path string) {
		rel, err := filepath.Rel(copied, path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.ToSlash(rel), suffix)
		got[name] = true
		if text, ok := want[name]; !ok || text != read(t, path) {
			t.Errorf("%s: not as in the repository (there: %v); run this test with -update", name, ok)
		}
	})
	for name := range want {
		if !got[name] {
			t.Errorf("%s: not copied; run this test with -update", name)
		}
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

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
