package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/plugins"
	"github.com/wevalr/wevalr/plugins/script/prebuilt"
)

// recipe is how a folder becomes code: who makes it, of what, and the making. digest and tool go into the
// build's key.
type recipe struct {
	tool, digest string
	compile      func(ctx context.Context) ([]byte, error)
}

// recipe finds out the language by the file that every plugin in it has; without one it is Go, whose own
// words then say what is missing.
func (b *Builder) recipe(ctx context.Context, dir string) (*recipe, error) {
	has := func(pattern string) bool {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		return err == nil && len(found) > 0
	}
	switch {
	case has("*.go"):
	case has("*.star"):
		return b.script(ctx, dir)
	default:
		for _, l := range languages() {
			if has(l.source) {
				return l.recipe(ctx, dir)
			}
		}
	}
	return b.golang(ctx, dir)
}

func (b *Builder) golang(ctx context.Context, dir string) (*recipe, error) {
	tool, err := findGo(dir)
	if err != nil {
		return nil, err
	}
	src := b.readIndex(dir, tool)
	if src == nil {
		if src, err = tool.sources(ctx, dir); err != nil {
			return nil, err
		}
		b.writeIndex(dir, src)
	}
	return &recipe{src.GoVersion, src.digest, func(ctx context.Context) ([]byte, error) { return tool.build(ctx, dir) }}, nil
}

// script is a folder of Starlark: its code is the interpreter's, the files are assets.
func (b *Builder) script(ctx context.Context, dir string) (*recipe, error) {
	code, err := prebuilt.Module()
	if err == nil {
		sum := sha256.Sum256(code)
		return &recipe{"prebuilt interpreter", hex.EncodeToString(sum[:]), func(context.Context) ([]byte, error) { return code, nil }}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, &BuildError{Dir: dir, Step: "interpreter", Cause: err}
	}
	tool, err := findGo(dir)
	if err != nil {
		return nil, &BuildError{
			Dir: dir, Step: "interpreter", Cause: errors.New("this wevalr carries no interpreter, and the Go toolchain (command go) is not on PATH to build it"),
			Remedy: "use a release of wevalr, install Go from https://go.dev/dl, or name a .wasm file that was built elsewhere instead of the folder",
		}
	}
	version, err := tool.run(ctx, dir, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	sum, err := filesOf(plugins.Interpreter)
	if err != nil {
		return nil, &BuildError{Dir: dir, Step: "interpreter", Cause: err}
	}
	v := strings.TrimSpace(string(version))
	key := digest([]any{buildRecipe, "interpreter", v, sum})
	return &recipe{v, key, func(ctx context.Context) ([]byte, error) {
		if code := b.cached(key); code != nil {
			return code, nil
		}
		code, err := tool.interpreter(ctx)
		if err == nil {
			b.keep(key, code)
		}
		return code, err
	}}, nil
}

// interpreter builds it out of the sources that wevalr carries.
func (t *goTool) interpreter(ctx context.Context) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "wevalr-interpreter-")
	if err == nil {
		defer func() { _ = os.RemoveAll(tmp) }()
		err = os.CopyFS(filepath.Join(tmp, "plugins"), plugins.Interpreter)
	}
	for name, text := range map[string]string{"go.mod": plugins.InterpreterMod, "go.sum": plugins.InterpreterSum} {
		if err == nil {
			err = os.WriteFile(filepath.Join(tmp, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		return nil, &BuildError{Dir: "interpreter", Step: "interpreter", Cause: err}
	}
	return t.build(ctx, filepath.Join(tmp, "plugins", "script"))
}

// language is one that another toolchain than Go's compiles. args ends with the output file.
type language struct {
	name, source string
	exts         []string
	commands     []string                                        // the compiler: the first that is there and can
	linkers      []string                                        // the linker, if one has to be named
	can          func(ctx context.Context, compiler string) bool // nil = it can
	args         func(linker, tmp string) []string
	remedy       string
}

func languages() []language {
	return []language{
		{
			name: "C", source: "plugin.c", exts: []string{".c", ".h"},
			commands: []string{"clang-22", "clang"}, linkers: []string{"wasm-ld-22", "wasm-ld"},
			args: func(linker, _ string) []string {
				return []string{
					"--target=wasm32-unknown-unknown", "-O2", "-nostdlib", "-ffreestanding", "-fno-builtin", "-mbulk-memory",
					"-fuse-ld=" + linker, "-Wl,--no-entry", "-Wl,--strip-all", "-Wl,-z,stack-size=131072", "plugin.c", "-o",
				}
			},
			remedy: "install clang and lld, on Debian: apt-get install clang-22 lld-22",
		},
		{
			name: "Rust", source: "src/lib.rs", exts: []string{".rs"},
			commands: []string{"rustc", "/usr/bin/rustc"}, can: hasWasm, linkers: []string{"wasm-ld-14", "wasm-ld-22", "wasm-ld", "rust-lld"},
			args: func(linker, _ string) []string {
				return []string{
					"--edition", "2021", "--target", "wasm32-unknown-unknown", "--crate-type", "cdylib", "-C", "opt-level=3", "-C", "lto", "-C", "codegen-units=1",
					"-C", "panic=abort", "-C", "strip=symbols", "-C", "linker=" + linker, "src/lib.rs", "-o",
				}
			},
			remedy: "install rustc with the target wasm32-unknown-unknown (rustup target add, or on Debian: rustc libstd-rust-dev-wasm32) and lld",
		},
		{
			name: "AssemblyScript", source: "assembly/index.ts", exts: []string{".ts"}, commands: []string{"asc"},
			args: func(_, tmp string) []string {
				// A folder's own asconfig.json could name transforms, which are code to run.
				return []string{
					"assembly/index.ts", "--config", filepath.Join(tmp, "asconfig.json"), "-O3", "--runtime", "incremental",
					"--exportStart", "_initialize", "--enable", "bulk-memory", "--use", "abort=assembly/wevalr/abort", "-o",
				}
			},
			remedy: "npm install -g assemblyscript@0.28.20",
		},
	}
}

func (l *language) recipe(ctx context.Context, dir string) (*recipe, error) {
	compiler, linker := find(ctx, l.commands, l.can), find(ctx, l.linkers, nil)
	if compiler == "" || linker == "" && len(l.linkers) > 0 {
		return nil, &BuildError{
			Dir: dir, Step: "toolchain", Remedy: l.remedy,
			Cause: fmt.Errorf("%s: none of these is on PATH, or it lacks the target wasm32: %s", l.name, strings.Join(slices.Concat(l.commands, l.linkers), ", ")),
		}
	}
	t := &goTool{path: compiler, env: l.env()}
	version, err := t.run(ctx, dir, "--version")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &BuildError{Dir: dir, Step: "read", Cause: err}
	}
	defer func() { _ = root.Close() }()
	sum, err := filesOf(tree{root}, l.exts...)
	if err != nil {
		return nil, &BuildError{Dir: dir, Step: "read", Cause: err}
	}
	first, _, _ := strings.Cut(string(version), "\n")
	return &recipe{strings.TrimSpace(first), sum, func(ctx context.Context) ([]byte, error) {
		tmp, err := os.MkdirTemp("", "wevalr-build-")
		if err != nil {
			return nil, &BuildError{Dir: dir, Step: "build", Cause: err}
		}
		defer func() { _ = os.RemoveAll(tmp) }()
		if err := os.WriteFile(filepath.Join(tmp, "asconfig.json"), []byte("{}"), 0o600); err != nil {
			return nil, &BuildError{Dir: dir, Step: "build", Cause: err}
		}
		out := filepath.Join(tmp, "plugin.wasm")
		if _, err := t.run(ctx, dir, append(l.args(linker, tmp), out)...); err != nil {
			return nil, err
		}
		return readModule(out)
	}}, nil
}

func find(ctx context.Context, names []string, can func(context.Context, string) bool) string {
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil && (can == nil || can(ctx, p)) {
			return p
		}
	}
	return ""
}

// hasWasm reports whether a rustc has the target's library: rustup's may stand before Debian's on PATH, and
// be without.
func hasWasm(ctx context.Context, rustc string) bool {
	t := &goTool{path: rustc, env: (&language{}).env()}
	dir, err := t.run(ctx, ".", "--print", "target-libdir", "--target", "wasm32-unknown-unknown")
	if err != nil {
		return false
	}
	found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "libcore-*.rlib"))
	return len(found) > 0
}

func (l *language) env() []string {
	var env []string
	for _, k := range []string{"HOME", "PATH", "TMPDIR", "RUSTUP_HOME", "CARGO_HOME"} {
		if v, set := os.LookupEnv(k); set {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// filesOf is a digest over the names and contents of a tree's files, of some endings if any are given.
func filesOf(files fs.FS, exts ...string) (string, error) {
	var parts []any
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "node_modules" || d.Name() == "target") {
			return fs.SkipDir
		}
		if d.IsDir() || len(exts) > 0 && !slices.Contains(exts, path.Ext(name)) {
			return nil
		}
		body, err := fs.ReadFile(files, name)
		sum := sha256.Sum256(body)
		parts = append(parts, name, hex.EncodeToString(sum[:]))
		return err
	})
	return digest(parts), err
}
