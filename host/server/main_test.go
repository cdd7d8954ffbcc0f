package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/procwatch"
)

// TestMain is also the scripted env-server: the test binary run as "<test> helper:<mode> <args>".
func TestMain(m *testing.M) {
	procwatch.Main()
	if len(os.Args) > 1 {
		if mode, ok := strings.CutPrefix(os.Args[1], "helper:"); ok {
			os.Exit(helper(mode, os.Args[2:]))
		}
	}
	os.Exit(hosttest.Main(m))
}

// helper runs one of the processes that tests need.
func helper(mode string, args []string) int {
	switch mode {
	case "server":
		var s script
		if err := json.Unmarshal([]byte(args[1]), &s); err != nil {
			panic(err)
		}
		return s.serve(args[0])
	case "orphan": // leaves a holder behind
		return orphanMain(args[0], args[1])
	case "holder": // keeps something open
		hang()
	case "worker":
		return workerMain()
	case "host":
		return hostMain(args)
	}
	return 2
}

// hang waits for a signal that never comes.
func hang() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	<-c
}

// long reports whether everything is to be run instead of pairs.
func long() bool { return os.Getenv("WEVALR_LONG") == "1" }

// marks makes each child's command line findable.
type marks struct{ n atomic.Int64 }

func (m *marks) next() string { return fmt.Sprintf("mark-%d-%d", os.Getpid(), m.n.Add(1)) }

var marker marks

// spec is a scripted env-server over a transport.
func spec(t testing.TB, transport string, s script) Spec {
	t.Helper()
	if s.Mark == "" {
		s.Mark = marker.next()
	}
	arg, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		Argv: []string{self, "helper:server", "{address}", string(arg)}, Transport: transport,
		LogPath: filepath.Join(t.TempDir(), "server-1-1.log"), LogRel: "logs/attempt_1/server-1-1.log",
		StopGrace: 10 * time.Second, CancelGrace: 10 * time.Second, StartTimeout: hosttest.Patience,
	}
}

// rescript changes a spec's script.
func rescript(t testing.TB, sp Spec, change func(*script)) Spec {
	t.Helper()
	var s script
	if err := json.Unmarshal([]byte(sp.Argv[3]), &s); err != nil {
		t.Fatal(err)
	}
	change(&s)
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	sp.Argv = append(slices.Clone(sp.Argv[:3]), string(b))
	return sp
}

// start starts what spec says; when the test ends, nothing of it may be left.
func start(t testing.TB, sp Spec) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hosttest.Patience)
	defer cancel()
	s, err := Start(ctx, sp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gone(t, s, sp) })
	return s
}

// gone stops a generation and checks that nothing of it is left: no process, file or goroutine.
func gone(t testing.TB, s *Server, sp Spec) {
	t.Helper()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(now) }()
	if err := hosttest.Await(t, "Stop", stopped); err != nil {
		t.Error(err)
	}
	nothingLeft(t, sp)
	if s.dir != nil {
		if _, err := os.Lstat(s.dir.path); !os.IsNotExist(err) {
			t.Errorf("directory %s is left (%v)", s.dir.path, err)
		}
	}
	if _, ok := t.(*testing.T); ok { // a benchmark has goroutines of its own
		if err := goleak.Find(); err != nil {
			t.Errorf("goroutines are left: %v", err)
		}
	}
}

// suspend stops a server, and waits until all its threads have stopped where that can be seen.
func suspend(t testing.TB, s *Server) {
	t.Helper()
	if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	hosttest.Until(t, "the stop", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.PID()))
		for _, name := range threads {
			b, err := os.ReadFile(name)
			if i := bytes.LastIndexByte(b, ')'); err == nil && i >= 0 && !bytes.HasPrefix(b[i+1:], []byte(" T")) {
				return false
			}
		}
		return true
	})
}

// nothingLeft looks for processes with the mark of sp.
func nothingLeft(t testing.TB, sp Spec) {
	t.Helper()
	if mark := markOf(sp); mark != "" {
		if pids := marked(mark); len(pids) > 0 {
			t.Errorf("processes %v are left", pids)
		}
	}
}

func markOf(sp Spec) string {
	var s script
	if len(sp.Argv) < 4 || json.Unmarshal([]byte(sp.Argv[3]), &s) != nil {
		return ""
	}
	return s.Mark
}

// marked lists the living processes that have mark in their command line.
func marked(mark string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(b), mark) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

// order is a run whose task says what the scripted env-server does with it.
func order(do task) *wire.RunRequest {
	b, err := json.Marshal(do)
	if err != nil {
		panic(err)
	}
	return &wire.RunRequest{
		TaskData: map[string]any{"order": string(b)}, Model: "m", Sampling: map[string]any{},
		Client: map[string]any{"type": "eval", "base_url": "http://127.0.0.1:1/v1", "api_key_var": "KEY"},
	}
}

// ending is what one Run returned.
type ending struct {
	reply Reply
	err   error
}

// send starts a run.
func send(ctx context.Context, s *Server, do task) <-chan ending {
	ch := make(chan ending, 1)
	go func() {
		r, err := s.Run(ctx, order(do), nil)
		ch <- ending{r, err}
	}()
	return ch
}

// run waits for a run.
func run(t testing.TB, s *Server, do task) ending {
	t.Helper()
	return hosttest.Await(t, "the end of run "+do.Do, send(context.Background(), s, do))
}

// completes runs one rollout that must come back whole.
func completes(t testing.TB, s *Server, name string) {
	t.Helper()
	e := run(t, s, task{Do: "reply", Name: name})
	if e.err != nil {
		t.Fatalf("run %s: %v", name, e.err)
	}
	whole(t, e.reply, name)
}

// whole checks an episode of the scripted env-server.
func whole(t testing.TB, r Reply, name string) {
	t.Helper()
	if r.Episode == nil || r.Episode.ID != name || len(r.Episode.Traces) != 1 || r.Episode.Traces[0].Completion() != "said "+name {
		t.Fatalf("got %+v, want the episode %s", r.Episode, name)
	}
}
