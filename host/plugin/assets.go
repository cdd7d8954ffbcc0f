package plugin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Assets are the read-only files that travel inside a module: path → content. In the section they
// stand sorted by path as uvarint length, path, uvarint length, content, with nothing around.
type Assets map[string][]byte

// encodeAssets is the inverse of decodeAssets.
func encodeAssets(a Assets) []byte {
	var b []byte
	for _, name := range sortedKeys(a) {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
		b = binary.AppendUvarint(b, uint64(len(a[name])))
		b = append(b, a[name]...)
	}
	return b
}

// decodeAssets keeps views into b.
func decodeAssets(b []byte) (Assets, error) {
	a := Assets{}
	last := ""
	for r := (&reader{b: b}); r.pos < len(b); {
		name := r.name()
		body := r.bytes()
		if r.err != nil {
			return nil, r.err
		}
		if !fs.ValidPath(name) || name == "." {
			return nil, fmt.Errorf("asset %q: not a relative path", scrub(name))
		}
		if len(a) > 0 && name <= last {
			return nil, errors.New("paths are not sorted or not unique")
		}
		a[name], last = body, name
	}
	return a, nil
}

// collectAssets reads the files that the patterns match, in path.Match's syntax. A pattern that
// matches nothing is an error: the author meant something by it.
func collectAssets(tree fs.FS, patterns []string) (Assets, error) {
	a := Assets{}
	total := 0
	for _, p := range patterns {
		names, err := fs.Glob(tree, p)
		if err != nil {
			return nil, fmt.Errorf("assets: %q: %w", p, err)
		}
		found := false
		for _, name := range names {
			st, err := fs.Stat(tree, name)
			if err != nil {
				return nil, fmt.Errorf("assets: %w", err)
			}
			if !st.Mode().IsRegular() {
				continue
			}
			body, err := fs.ReadFile(tree, name)
			if err != nil {
				return nil, fmt.Errorf("assets: %w", err)
			}
			found = true
			if _, again := a[name]; !again {
				total += len(body)
			}
			if total > maxModule {
				return nil, fmt.Errorf("assets: over %d MiB together", maxModule>>20)
			}
			a[name] = body
		}
		if !found {
			return nil, fmt.Errorf("assets: %q matches no file", p)
		}
	}
	return a, nil
}

// checkPattern says what is wrong with an asset pattern, "" for nothing.
func checkPattern(p string) string {
	if _, err := path.Match(p, ""); err != nil {
		return "bad pattern"
	}
	if !fs.ValidPath(p) || p == "." || strings.ContainsRune(p, '\\') {
		return "must be a path inside the plugin's folder"
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
