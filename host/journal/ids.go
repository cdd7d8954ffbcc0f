package journal

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// validName is what run names and ids look like.
var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// newID is when a run began (UTC) and two random bytes: 20261129-101530-4f2a.
func newID(now time.Time) string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	return now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}

// Find gives the directory of the run that ref means: a run's directory, its id, or a beginning of
// its id that no other run under root shares.
//
// # Errors
//
// *[NotFoundError], *[AmbiguousError], or what reading root gave.
func Find(root, ref string) (string, error) {
	if _, err := os.Stat(filepath.Join(ref, RunFile)); ref != "" && err == nil {
		return ref, nil
	}
	dirs, err := List(root)
	if err != nil {
		return "", err
	}
	var found []string
	for _, d := range dirs {
		switch id := filepath.Base(d); {
		case id == ref:
			return d, nil
		case ref != "" && strings.HasPrefix(id, ref):
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return "", &NotFoundError{root, ref}
	case 1:
		return found[0], nil
	}
	return "", &AmbiguousError{ref, found}
}

// List gives the directories of all runs under root, by name and id. A root that is not there has none.
func List(root string) ([]string, error) {
	names, err := os.ReadDir(root)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journal: list runs: %w", err)
	}
	var dirs []string
	for _, n := range names {
		ids, err := os.ReadDir(filepath.Join(root, n.Name()))
		if err != nil {
			continue // a file, or not ours to read
		}
		for _, id := range ids {
			dir := filepath.Join(root, n.Name(), id.Name())
			if _, err := os.Stat(filepath.Join(dir, RunFile)); err == nil {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}
