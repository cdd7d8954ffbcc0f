package plugin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/wevalr/wevalr/plugins/abi"
)

// manifestFile stands beside a plugin's source.
const manifestFile = "plugin.toml"

// buildRecipe goes into every build's key: change it when the same sources give other bytes.
const buildRecipe = "wevalr plugin build 1"

// Built is a module made from a source folder.
type Built struct {
	Module   []byte // with manifest and assets
	SHA256   string
	Manifest *Manifest
	// Sources is the sha256 over everything that went in: sources of the plugin and of the modules
	// that are not pinned by go.sum, manifest, assets, Go version.
	Sources   string
	GoVersion string
	Cached    bool
	Took      time.Duration
}

// Builder builds source folders with the Go toolchain and keeps the results. The zero value keeps
// nothing. Safe for concurrent use, also by several processes on one CacheDir.
type Builder struct {
	CacheDir string // "" = no cache
}

// Build builds a source folder with the cache in the user's cache folder.
func Build(ctx context.Context, dir string) (*Built, error) {
	cache, err := defaultCacheDir()
	if err != nil {
		return nil, err
	}
	return (&Builder{CacheDir: cache}).Build(ctx, dir)
}

// Build makes the module of the Go package in dir: plugin.toml is checked, the package is built
// for wasip1 with pinned flags, manifest and assets are appended. Nothing of the folder is executed.
// What was built from equal sources before is read from the cache.
//
// # Errors
//
// *ManifestError; *BuildError, which holds the toolchain's own text.
func (b *Builder) Build(ctx context.Context, dir string) (*Built, error) {
	start := time.Now()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, &BuildError{Dir: dir, Step: "read", Cause: err}
	}
	parts, err := readParts(dir)
	if err != nil {
		return nil, err
	}
	out := &Built{Manifest: parts.manifest}
	defer func() { out.Took = time.Since(start) }()
	if b.CacheDir != "" {
		if err := privateDir(b.CacheDir); err != nil {
			return nil, err
		}
		if err := privateDir(filepath.Join(b.CacheDir, "build")); err != nil {
			return nil, err
		}
	}
	src, err := b.recipe(ctx, dir)
	if err != nil {
		return nil, err
	}
	out.GoVersion = src.tool
	out.Sources = digest([]any{buildRecipe, src.tool, src.digest, string(parts.section), digest(parts.assets)})
	if out.Module = b.cached(out.Sources); out.Module != nil {
		out.Cached = true
	} else {
		code, err := src.compile(ctx)
		if err != nil {
			return nil, err
		}
		code = appendSection(code, abi.SectionManifest, parts.section)
		if len(parts.assets) > 0 {
			code = appendSection(code, abi.SectionAssets, parts.assets)
		}
		if _, err := Inspect(dir, code); err != nil {
			return nil, err
		}
		out.Module = code
		b.keep(out.Sources, code)
	}
	sum := sha256.Sum256(out.Module)
	out.SHA256 = hex.EncodeToString(sum[:])
	return out, nil
}

// parts are what is appended to the code.
type parts struct {
	manifest        *Manifest
	section, assets []byte
}

func readParts(dir string) (*parts, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &BuildError{Dir: dir, Step: "read", Cause: err}
	}
	defer func() { _ = root.Close() }()
	files := tree{root}
	text, err := fs.ReadFile(files, manifestFile)
	if hostTrouble(err) != nil {
		return nil, &BuildError{Dir: dir, Step: "read", Cause: err}
	}
	if err != nil {
		remedy := ""
		if errors.Is(err, fs.ErrNotExist) {
			remedy = "a plugin's folder holds plugin.toml and a Go package; start one with: wevalr plugin new"
		}
		return nil, &BuildError{Dir: dir, Step: "manifest", Cause: err, Remedy: remedy}
	}
	m, err := ParseManifest(filepath.Join(dir, manifestFile), text)
	if err != nil {
		return nil, err
	}
	p := &parts{manifest: m}
	if p.section, err = m.Canonical(); err != nil {
		return nil, &BuildError{Dir: dir, Step: "manifest", Cause: err}
	}
	assets, err := collectAssets(files, m.Assets)
	if err != nil {
		return nil, &BuildError{Dir: dir, Step: "assets", Cause: err}
	}
	p.assets = encodeAssets(assets)
	return p, nil
}

func (b *Builder) modulePath(key string) string {
	return filepath.Join(b.CacheDir, "build", key+".wasm")
}

// cached reads a kept module; its own digest stands before it, since a torn or changed file must
// not count.
func (b *Builder) cached(key string) []byte {
	if b.CacheDir == "" {
		return nil
	}
	body, err := os.ReadFile(b.modulePath(key))
	if err != nil || len(body) < sha256.Size {
		return nil
	}
	sum := sha256.Sum256(body[sha256.Size:])
	if !bytes.Equal(sum[:], body[:sha256.Size]) {
		return nil
	}
	return body[sha256.Size:]
}

// keep stores a module. A cache that cannot be written costs time and nothing else.
func (b *Builder) keep(key string, code []byte) {
	if b.CacheDir == "" {
		return
	}
	sum := sha256.Sum256(code)
	_ = renameio.WriteFile(b.modulePath(key), append(sum[:], code...), 0o600)
}
