// Package publicdata finds and reads the public data sets that tests of shipped plugins are held against.
// For tests only; it keeps nothing and starts nothing.
package publicdata

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Dir is the folder of a data set beside the checkout. Without it the test is skipped, or fails where
// WEVALR_REQUIRE_DATA is 1.
func Dir(tb testing.TB, set string) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	dir = filepath.Join(dir, "..", "shared", "data", set)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("WEVALR_REQUIRE_DATA") == "1" {
			tb.Fatalf("public data: %v", err)
		}
		tb.Skipf("public data is not here: %v", err)
	}
	return dir
}

// Rows are the values of a gzipped file of JSON lines.
func Rows[T any](tb testing.TB, path string) (out []T) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	for d := json.NewDecoder(z); ; {
		var row T
		switch err := d.Decode(&row); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			tb.Fatalf("%s: %v", path, err)
		}
		out = append(out, row)
	}
}
