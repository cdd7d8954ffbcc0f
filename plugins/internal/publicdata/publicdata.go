// Package publicdata finds the public data sets that tests of shipped plugins are held against. For tests
// only; it keeps nothing and starts nothing.
package publicdata

import (
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
