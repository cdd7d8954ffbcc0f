// Package hosttest is what tests of several rooms of host need: waiting, places, and the end of a test
// run. For tests only; it keeps nothing and starts nothing. What goes wrong in it ends the test.
package hosttest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Patience is the deadline of everything that a test waits for.
const Patience = 60 * time.Second

// Await waits for what must happen, and shows who is stuck when it does not.
func Await[T any](tb testing.TB, what string, ch <-chan T) T {
	tb.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		buf := make([]byte, 1<<20)
		tb.Fatalf("%s did not happen\n%s", what, buf[:runtime.Stack(buf, true)])
		panic("unreachable")
	}
}

// Until polls what has no channel.
func Until(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(Patience); !cond(); <-tick.C {
		if time.Now().After(end) {
			tb.Fatalf("%s did not happen", what)
		}
	}
}

// Root is the checkout's root.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	tb.Fatal("no go.mod above the test")
	return ""
}

// Shared is a path of the data sets and recorded traffic beside the checkout. Without it the test is
// skipped, or fails where WEVALR_REQUIRE_DATA is 1.
func Shared(tb testing.TB, path string) string {
	tb.Helper()
	path = filepath.Join(Root(tb), "..", "shared", path)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("WEVALR_REQUIRE_DATA") == "1" {
			tb.Fatalf("shared data: %v", err)
		}
		tb.Skipf("shared data is not here: %v", err)
	}
	return path
}

// Socket is an ipc endpoint in a private directory with a short path.
func Socket(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "wvs") //nolint:usetesting // a socket's path must be short
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return "ipc://" + filepath.Join(dir, "s")
}

// Main runs tests that start env-servers, and gives the exit code. The directories of generations go to
// a place of these tests' own; none may stay there, and no goroutine either.
func Main(m *testing.M) (code int) {
	base, err := os.MkdirTemp("/tmp", "wvt")
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("XDG_RUNTIME_DIR", base); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(c int) { code = c }))
	left, _ := os.ReadDir(base)
	_ = os.RemoveAll(base)
	if len(left) > 0 {
		fmt.Fprintln(os.Stderr, "directories of generations are left:", left)
		return 1
	}
	return code
}
