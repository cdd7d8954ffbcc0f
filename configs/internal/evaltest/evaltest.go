// Package evaltest is what tests of the eval files' folders need: the built wevalr, processes, free ports
// and a copy of the checkout. For tests only; it keeps nothing. A process that it starts ends with its
// test. Errors end the test.
package evaltest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// Main builds wevalr, puts its path into binary, runs the tests, and looks for goroutines that they left.
// It gives the exit code.
func Main(m *testing.M, binary *string) int {
	dir, err := os.MkdirTemp("", "wevalr-evaltest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer func() { _ = os.RemoveAll(dir) }()
	*binary = filepath.Join(dir, "wevalr")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", *binary, "github.com/wevalr/wevalr/cmd/wevalr")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
		return 2
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Start starts cmd, which is killed when the test ends; done is closed when it has ended.
func Start(tb testing.TB, cmd *exec.Cmd) (done <-chan struct{}) {
	tb.Helper()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	tb.Cleanup(func() { // of a killed wevalr, the warden sweeps what is left
		_ = cmd.Process.Kill()
		<-ended
	})
	return ended
}

// FreePort is a port that nobody listens on.
func FreePort(tb testing.TB) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

// Checkout copies into dir what the commands of a document need.
func Checkout(tb testing.TB, dir string) {
	tb.Helper()
	for _, name := range []string{"configs", "plugins"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("../..", name))); err != nil {
			tb.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join("../..", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}
