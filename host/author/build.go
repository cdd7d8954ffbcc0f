package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/wevalr/wevalr/host/plugin"
)

// BuildSpec says what to build. Output "" is NAME.wasm in Dir.
type BuildSpec struct {
	Dir, Output string
	// Verify builds once more, without any cache of wevalr's, and compares with Output where that is there
	// already, else with the first build.
	Verify bool
}

// Build is a module that was written, or verified.
type Build struct {
	File     string   `json:"file"`
	Name     string   `json:"name"`
	SHA256   string   `json:"sha256"`
	Size     int      `json:"size"`
	Go       string   `json:"go"`
	Verified bool     `json:"verified"` // a second build gave the same bytes
	Check    *Report  `json:"check"`
	Next     []string `json:"next"`
}

// DifferentError says that the same sources gave other bytes than the ones that are there.
type DifferentError struct{ File, Was, Now string }

func (e *DifferentError) Error() string {
	return fmt.Sprintf("plugin build --verify: %s: sha256 is %s, building again gives %s", e.File, e.Was, e.Now)
}

// MakeModule builds the plugin in a folder and checks the module.
//
// # Errors
//
// Those of plugin.Builder.Build; *DifferentError.
func MakeModule(ctx context.Context, s BuildSpec) (*Build, error) {
	built, err := plugin.Build(ctx, s.Dir)
	if err != nil {
		return nil, err
	}
	out := &Build{File: s.Output, Name: built.Manifest.Name, SHA256: built.SHA256, Size: len(built.Module), Go: built.GoVersion}
	if out.File == "" {
		out.File = filepath.Join(s.Dir, built.Manifest.Name+".wasm")
	}
	if s.Verify {
		if err := out.verify(ctx, s.Dir, built.Module); err != nil {
			return nil, err
		}
	}
	out.Check = Check(out.File, built.Module)
	if err := renameio.WriteFile(out.File, built.Module, 0o644); err != nil {
		return nil, fmt.Errorf("plugin build: %w", err)
	}
	out.Next = []string{
		"wevalr plugin inspect " + out.File,
		"wevalr plugin test " + s.Dir,
		"wevalr plugin lock eval.toml   # once an eval file names it",
	}
	return out, nil
}

func (out *Build) verify(ctx context.Context, dir string, first []byte) error {
	was, err := os.ReadFile(out.File)
	if errors.Is(err, fs.ErrNotExist) {
		was, err = first, nil
	}
	if err != nil {
		return fmt.Errorf("plugin build: %w", err)
	}
	again, err := (&plugin.Builder{}).Build(ctx, dir)
	if err != nil {
		return err
	}
	if !bytes.Equal(was, again.Module) {
		return &DifferentError{File: out.File, Was: sum(was), Now: again.SHA256}
	}
	out.Verified = true
	return nil
}

// Text is for a person.
func (out *Build) Text(w io.Writer) error {
	for _, f := range out.Check.Findings {
		if f.Severity == Note {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s %s: %s\n", f.Code, f.Severity, indent(f.Message)); err != nil {
			return err
		}
	}
	verified := ""
	if out.Verified {
		verified = "verified: a second build gave the same bytes\n"
	}
	_, err := fmt.Fprintf(w, "%s: %d bytes, sha256 %s, %s\n%snext:\n", out.File, out.Size, out.SHA256, out.Go, verified)
	for _, n := range out.Next {
		if err == nil {
			_, err = fmt.Fprintf(w, "  %s\n", n)
		}
	}
	return err
}
