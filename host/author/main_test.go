package author

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// TestMain gives all tests one cache, so that each plugin is built once.
func TestMain(m *testing.M) {
	cache, err := os.MkdirTemp("", "wevalr-author-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	keepGoCache()
	os.Setenv("XDG_CACHE_HOME", cache)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(cache)
		os.Exit(code)
	}))
}

// keepGoCache pins the toolchain's cache, which would follow XDG_CACHE_HOME.
func keepGoCache() {
	if os.Getenv("GOCACHE") != "" {
		return
	}
	if dir, err := os.UserCacheDir(); err == nil {
		os.Setenv("GOCACHE", filepath.Join(dir, "go-build"))
	}
}

// needBuild skips what builds plugins.
func needBuild(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds plugins for wasip1")
	}
}

const root = "../.."
