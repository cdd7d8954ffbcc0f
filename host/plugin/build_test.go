package plugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
)

// sourceFolder is a plugin in Go without an SDK: a main package, a package beside it, an embedded
// file, an asset.
func sourceFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"plugin.toml": manifestHead + "assets = [\"data/*.txt\"]\n" + scorerManifest,
		"go.mod":      "module example.com/guest\n\ngo 1.24\n",
		"main.go": `package main

import (
	_ "embed"

	"example.com/guest/answer"
)

//go:embed text/words.txt
var words string

//go:wasmexport wevalr_abi_1_0
func marker() {}

//go:wasmexport wevalr_buf
func buf(n int32) int32 { return n + int32(len(words)) }

//go:wasmexport wevalr_call
func call(op, n int32) int64 { return answer.Of(op) }

func main() {}
`,
		"answer/answer.go": "package answer\n\nfunc Of(op int32) int64 { return 1 }\n",
		"text/words.txt":   "words",
		"data/a.txt":       "asset",
	} {
		writeFile(t, dir, name, text)
	}
	return dir
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBuilder_Build_SeesEveryChange(t *testing.T) {
	needBuild(t)
	dir := sourceFolder(t)
	b := &Builder{CacheDir: filepath.Join(t.TempDir(), "cache")}
	build := func() *Built {
		t.Helper()
		out, err := b.Build(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := build()
	if got := build(); !got.Cached || got.SHA256 != first.SHA256 {
		t.Errorf("unchanged: cached %v", got.Cached)
	}
	writeFile(t, dir, "main_test.go", "package main\n")
	writeFile(t, dir, "README", "no source\n")
	if got := build(); !got.Cached || got.Sources != first.Sources {
		t.Errorf("a test and a README: cached %v", got.Cached)
	}
	last := first.SHA256
	for _, change := range []struct{ name, text string }{
		{"answer/answer.go", "package answer\n\nfunc Of(op int32) int64 { return 2 }\n"},
		{"answer/more.go", "package answer\n\nfunc init() { println(1) }\n"},
		{"more.go", "package main\n\nfunc init() { println(2) }\n"},
		{"text/words.txt", "other words"},
		{"data/a.txt", "other asset"},
		{"data/b.txt", "new asset"},
		{"plugin.toml", manifestHead + scorerManifest + "[limits]\nmemory_mib = 32\n"},
	} {
		writeFile(t, dir, change.name, change.text)
		got := build()
		if got.SHA256 == last {
			t.Errorf("%s changed, and the module did not", change.name)
		}
		last = got.SHA256
	}
	in, err := Inspect("m", build().Module)
	if err != nil || in.SHA256 != last || in.ABI != "1.0" || in.Manifest.Limits.MemoryMiB != 32 {
		t.Errorf("got %+v, %v", in, err)
	}
}

func TestBuilder_Build_DamagedCache(t *testing.T) {
	needBuild(t)
	dir := sourceFolder(t)
	b := &Builder{CacheDir: filepath.Join(t.TempDir(), "cache")}
	first, err := b.Build(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	path := b.modulePath(first.Sources)
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body[len(body)-1] ^= 1
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := b.Build(context.Background(), dir)
	if err != nil || again.Cached || again.SHA256 != first.SHA256 {
		t.Errorf("got cached %v, %v: want a new, equal build", again.Cached, err)
	}
}

func TestBuilder_Build_Parallel(t *testing.T) {
	needBuild(t)
	b := &Builder{CacheDir: filepath.Join(t.TempDir(), "cache")}
	var wg sync.WaitGroup
	sums := make([]string, 4)
	for i := range sums {
		dir := sourceFolder(t)
		wg.Go(func() {
			out, err := b.Build(context.Background(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			sums[i] = out.SHA256
		})
	}
	wg.Wait()
	for _, s := range sums {
		if s != sums[0] {
			t.Errorf("equal folders in different places give different modules: %v", sums)
			break
		}
	}
}

func TestBuilder_Build_SaysWhy(t *testing.T) {
	needBuild(t)
	for _, tc := range []struct {
		name   string
		change func(dir string)
		want   []string
	}{
		{
			"syntax", func(dir string) { writeFile(t, dir, "main.go", "package main\n\nfunc main() { x }\n") },
			[]string{"go build", "main.go:3", "undefined: x"},
		},
		{
			"no manifest", func(dir string) { _ = os.Remove(filepath.Join(dir, "plugin.toml")) },
			[]string{"manifest", "plugin.toml", "wevalr plugin new"},
		},
		{"no module", func(dir string) { _ = os.Remove(filepath.Join(dir, "go.mod")) }, []string{"go mod init"}},
		{"no command", func(dir string) { writeFile(t, dir, "main.go", "package lib\n") }, []string{"package main"}},
		{
			"newer Go", func(dir string) { writeFile(t, dir, "go.mod", "module example.com/guest\n\ngo 1.99\n") },
			[]string{"1.99", "install that one"},
		},
		{"missing package", func(dir string) {
			writeFile(t, dir, "main.go", "package main\n\nimport _ \"example.org/none\"\n\nfunc main() {}\n")
		}, []string{"example.org/none", "go mod tidy"}},
		{
			"no marker", func(dir string) { writeFile(t, dir, "main.go", "package main\n\nfunc main() {}\n") },
			[]string{"no marker"},
		},
		{"no asset", func(dir string) { _ = os.RemoveAll(filepath.Join(dir, "data")) }, []string{"assets", "matches no file"}},
		{
			"no Go", func(string) { t.Setenv("PATH", t.TempDir()) },
			[]string{"the Go toolchain (command go) is not on PATH", "https://go.dev/dl"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := sourceFolder(t)
			tc.change(dir)
			_, err := (&Builder{}).Build(context.Background(), dir)
			if err == nil {
				t.Fatal("built")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
			if _, ok := errors.AsType[failure.Failer](err); !ok {
				t.Errorf("%T is no Failer", err)
			}
		})
	}
}

func TestBuilder_Build_Cancelled(t *testing.T) {
	needBuild(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (&Builder{}).Build(ctx, sourceFolder(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
