package zmqio

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helper runs one of the helper programs, which say what they saw.
func helper(mode string, args []string) int {
	switch mode {
	case "call": // endpoint, limit: one call
		limit, _ := time.ParseDuration(args[1])
		ctx, stop := context.WithTimeout(context.Background(), limit)
		defer stop()
		c, err := Dial(ctx, args[0], Options{DialRetry: time.Hour})
		if err != nil {
			fmt.Println("dial:", err)
			return 1
		}
		defer func() { _ = c.Close() }()
		r, err := c.Call(ctx, "run", nil, nil)
		if err != nil {
			fmt.Println("call:", err)
			return 1
		}
		status, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(status)) {
			if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				fmt.Println(len(r.Payload), strings.TrimSuffix(strings.TrimSpace(peak), " kB"))
			}
		}
		return 0
	}
	return 99
}

// runHelper runs one as attr says.
func runHelper(t *testing.T, attr *syscall.SysProcAttr, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.SysProcAttr, cmd.Dir = attr, "/"
	cmd.Env = append(append(os.Environ(), "GOCOVERDIR="+t.TempDir()), env...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s %v", out, err)
	return string(out)
}

// Another user's process is not served: it cannot reach the socket, and where somebody has opened the
// way, the server looks at who it is.
func TestServer_OtherUsersProcess_Refused(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("only root on Linux can become another user")
	}
	path := socketPath(t)
	s := listen(t, "ipc://"+path, echo, ServerOptions{})
	other := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	call := func(attr *syscall.SysProcAttr, limit string) string {
		t.Helper()
		return runHelper(t, attr, nil, "helper:call", s.Endpoint(), limit)
	}
	if got := call(other, "2s"); !strings.Contains(got, "permission denied") {
		t.Errorf("a private directory: got %q", got)
	}
	if err := os.Chmod(path[:len(path)-2], 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := call(other, "2s"); !strings.Contains(got, "dial: ") || strings.Contains(got, "permission denied") {
		t.Errorf("an open directory: got %q", got)
	}
	if got := call(nil, patience.String()); !strings.HasPrefix(got, "0 ") {
		t.Errorf("this user: got %q", got)
	}
}

// The whole process of a client that gets 256 MB: its largest resident set.
func TestClient_LargeReply_PeakMemory(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getenv("WEVALR_LONG") != "1" {
		t.Skip("only in the long mode (WEVALR_LONG=1) on Linux")
	}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector's own memory is twice what it watches")
	}
	const size = 256 << 20
	s := listen(t, "ipc://"+socketPath(t), func(context.Context, *Request) []byte { return make([]byte, size) }, ServerOptions{QueueBytes: size})
	for _, env := range [][]string{nil, {"GOMEMLIMIT=300MiB"}} {
		var got, peak int64
		if _, err := fmt.Sscan(runHelper(t, nil, env, "helper:call", s.Endpoint(), patience.String()), &got, &peak); err != nil || got != size {
			t.Fatalf("got %d bytes, %v", got, err)
		}
		ratio := float64(peak<<10) / size
		t.Logf("%v: peak %d MiB, %.2f of the reply", env, peak>>10, ratio)
		if ratio >= 2.2 {
			t.Errorf("%v: the peak is %.2f of the reply", env, ratio)
		}
	}
}
