package conform_test

import (
	"encoding/binary"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

// module builds the plugin beside this folder, appends manifest and assets, and gives the file.
func module(tb testing.TB, name string, build func(tb testing.TB, dir string) string) string {
	tb.Helper()
	dir, err := filepath.Abs(filepath.Join("..", name))
	if err != nil {
		tb.Fatal(err)
	}
	// Compilers read these files unseen by go test, which must not take an old result for the answer.
	for _, tree := range []string{dir, filepath.Join("..", "..", "plugins", "sdk")} {
		err := filepath.WalkDir(tree, func(file string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				read(tb, file)
			}
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	code := read(tb, build(tb, dir))
	text := read(tb, filepath.Join(dir, "plugin.toml"))
	m, err := plugin.ParseManifest("plugin.toml", text)
	if err != nil {
		tb.Fatal(err)
	}
	code = section(code, abi.SectionManifest, text)
	var assets []byte
	for _, pattern := range m.Assets {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			tb.Fatal(err)
		}
		slices.Sort(files)
		for _, f := range files {
			rel, err := filepath.Rel(dir, f)
			if err != nil {
				tb.Fatal(err)
			}
			for _, b := range [][]byte{[]byte(rel), read(tb, f)} {
				assets = append(binary.AppendUvarint(assets, uint64(len(b))), b...)
			}
		}
	}
	if assets != nil {
		code = section(code, abi.SectionAssets, assets)
	}
	file := filepath.Join(tb.TempDir(), name+".wasm")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

func section(b []byte, name string, body []byte) []byte {
	head := append(binary.AppendUvarint(nil, uint64(len(name))), name...)
	b = binary.AppendUvarint(append(b, 0), uint64(len(head)+len(body)))
	return append(append(b, head...), body...)
}

func read(tb testing.TB, file string) []byte {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// need finds the first of the commands, and skips without any.
func need(tb testing.TB, lang string, names ...string) string {
	tb.Helper()
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	tb.Skipf("%s: none of these commands is here: %s", lang, strings.Join(names, ", "))
	return ""
}

func run(tb testing.TB, dir, name string, args ...string) {
	tb.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v\n%s", name, err, out)
	} else if len(out) > 0 {
		tb.Errorf("%s: warnings:\n%s", name, out)
	}
}

func buildC(tb testing.TB, dir string) string {
	tb.Helper()
	clang, ld := need(tb, "C", "clang-22", "clang"), need(tb, "C", "wasm-ld-22", "wasm-ld")
	out := filepath.Join(tb.TempDir(), "c.wasm")
	run(tb, dir, clang, "--target=wasm32-unknown-unknown", "-O2", "-Wall", "-Wextra", "-nostdlib", "-ffreestanding", "-fno-builtin", "-mbulk-memory",
		"-fuse-ld="+ld, "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,-z,stack-size=131072", "-o", out, "plugin.c")
	return out
}

func buildAssemblyScript(tb testing.TB, dir string) string {
	tb.Helper()
	asc := os.Getenv("WEVALR_ASC")
	if asc == "" {
		asc = need(tb, "AssemblyScript (npm install -g assemblyscript@0.28.20, or WEVALR_ASC = the path of asc)", "asc")
	}
	out := filepath.Join(tb.TempDir(), "as.wasm")
	run(tb, dir, asc, "assembly/index.ts", "-O3", "--runtime", "incremental", "--exportStart", "_initialize", "--enable", "bulk-memory",
		"--use", "abort=assembly/wevalr/abort", "-o", out)
	return out
}

func buildRust(tb testing.TB, dir string) string {
	tb.Helper()
	rustc, ld := os.Getenv("WEVALR_RUSTC"), need(tb, "Rust", "wasm-ld-14", "wasm-ld-22", "wasm-ld", "rust-lld")
	if rustc == "" {
		rustc = rustWithWasm(tb)
	}
	out := filepath.Join(tb.TempDir(), "rust.wasm")
	run(tb, dir, rustc, "--edition", "2021", "--target", "wasm32-unknown-unknown", "--crate-type", "cdylib", "-C", "opt-level=3", "-C", "lto", "-C", "codegen-units=1",
		"-C", "panic=abort", "-C", "strip=symbols", "-C", "linker="+ld, "src/lib.rs", "-o", out)
	return out
}

// rustWithWasm finds a rustc that has the target's library: Debian's stands in /usr/bin, rustup's may be
// before it on PATH and without.
func rustWithWasm(tb testing.TB) string {
	tb.Helper()
	for _, rustc := range []string{"rustc", "/usr/bin/rustc"} {
		dir, err := exec.Command(rustc, "--print", "target-libdir", "--target", "wasm32-unknown-unknown").Output()
		if err != nil {
			continue
		}
		if found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "libcore-*.rlib")); len(found) > 0 {
			return rustc
		}
	}
	tb.Skip("Rust: no rustc with the library of wasm32-unknown-unknown is here (Debian: rustc and libstd-rust-dev-wasm32, or WEVALR_RUSTC)")
	return ""
}
