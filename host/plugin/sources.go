package plugin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// sourceIndex lists what a plugin is built from, so that a second run need not ask the go command.
// Contents are hashed each time: sources are small, and time stamps lie.
type sourceIndex struct {
	Tool      string            // the toolchain's stamp
	GoVersion string            // such as go1.26.0
	Files     []string          // absolute
	Folders   map[string]string // absolute → digest of the names in it: a new file must be seen
	Digest    string            // of the files
	digest    string
}

// listedPackage is what is read of `go list -json`.
type listedPackage struct {
	Dir, Name  string
	Standard   bool
	GoFiles    []string
	EmbedFiles []string
	SFiles     []string
	SysoFiles  []string
	Ignored    []string `json:"IgnoredGoFiles"`
	Module     *struct {
		Version, GoMod string
		Replace        *struct{ Version string }
	}
}

// pinned reports whether a package's files cannot change without go.mod or go.sum changing.
func (p *listedPackage) pinned() bool {
	if p.Standard || p.Module == nil {
		return p.Standard
	}
	if p.Module.Replace != nil {
		return p.Module.Replace.Version != ""
	}
	return p.Module.Version != ""
}

// sources asks the go command what the package in dir is built from.
func (t *goTool) sources(ctx context.Context, dir string) (*sourceIndex, error) {
	out, err := t.run(ctx, dir, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	ix := &sourceIndex{Tool: t.stamp, GoVersion: strings.TrimSpace(string(out)), Folders: map[string]string{}}
	out, err = t.run(ctx, dir, "list", "-deps", "-buildvcs=false",
		"-json=Dir,Name,Standard,GoFiles,EmbedFiles,SFiles,SysoFiles,IgnoredGoFiles,Module", ".")
	if err != nil {
		return nil, err
	}
	folders := map[string]bool{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, &BuildError{Dir: dir, Step: "go list", Cause: err}
		}
		if p.pinned() {
			continue
		}
		if p.Dir == dir && p.Name != "main" {
			return nil, &BuildError{
				Dir: dir, Step: "go list", Cause: fmt.Errorf("package %s is not a command", p.Name),
				Remedy: "the folder's package must be package main",
			}
		}
		folders[p.Dir] = true
		if p.Module != nil && p.Module.GoMod != "" {
			ix.Files = append(ix.Files, p.Module.GoMod, filepath.Join(filepath.Dir(p.Module.GoMod), "go.sum"))
		}
		for _, names := range [][]string{p.GoFiles, p.EmbedFiles, p.SFiles, p.SysoFiles, p.Ignored} {
			for _, n := range names {
				file := filepath.Join(p.Dir, n)
				ix.Files = append(ix.Files, file)
				for d := filepath.Dir(file); len(d) > len(p.Dir); d = filepath.Dir(d) {
					folders[d] = true
				}
			}
		}
	}
	slices.Sort(ix.Files)
	ix.Files = slices.Compact(ix.Files)
	for d := range folders {
		ix.Folders[d] = namesDigest(d)
	}
	ix.digest = filesDigest(dir, ix.Files)
	return ix, nil
}

func (b *Builder) indexPath(dir string) string {
	return filepath.Join(b.CacheDir, "build", "index-"+digest(dir)[:32]+".json")
}

// readIndex gives the index of the last build if the same files still make up the plugin, their
// contents hashed anew; nil if the go command must be asked.
func (b *Builder) readIndex(dir string, t *goTool) *sourceIndex {
	if b.CacheDir == "" {
		return nil
	}
	text, err := os.ReadFile(b.indexPath(dir))
	if err != nil {
		return nil
	}
	ix := &sourceIndex{}
	if json.Unmarshal(text, ix) != nil || ix.Tool != t.stamp {
		return nil
	}
	for d, names := range ix.Folders {
		if namesDigest(d) != names {
			return nil
		}
	}
	// A changed file may import other packages: only equal contents are known to have equal lists.
	if ix.digest = filesDigest(dir, ix.Files); ix.digest != ix.Digest {
		return nil
	}
	return ix
}

// writeIndex stores an index; failing costs the next build some time and nothing else.
func (b *Builder) writeIndex(dir string, ix *sourceIndex) {
	if b.CacheDir == "" {
		return
	}
	ix.Digest = ix.digest
	if text, err := json.Marshal(ix); err == nil {
		_ = renameio.WriteFile(b.indexPath(dir), text, 0o600)
	}
}

// namesDigest is over the names in a folder, "" if it cannot be read.
func namesDigest(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return digest(names)
}

// filesDigest is over paths relative to the folder, so that a copy elsewhere has the same one, and
// contents; a file that is missing counts as such.
func filesDigest(dir string, files []string) string {
	h := sha256.New()
	for _, f := range files {
		rel, err := filepath.Rel(dir, f)
		if err != nil {
			rel = f
		}
		body, err := os.ReadFile(f)
		_, _ = fmt.Fprintf(h, "%q %t %x\n", rel, err == nil, sha256.Sum256(body))
	}
	return hex.EncodeToString(h.Sum(nil))
}
