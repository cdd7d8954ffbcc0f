package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
)

// both runs a test over both transports.
func both(t *testing.T, f func(t *testing.T, transport string)) {
	for _, transport := range transports() {
		t.Run(transport, func(t *testing.T) { f(t, transport) })
	}
}

// text is what the peer said when it refused.
func text(t *testing.T, e ending) string {
	t.Helper()
	var peer *PeerError
	if !errors.As(e.err, &peer) {
		t.Fatalf("got %v, want a *PeerError", e.err)
	}
	return peer.Text
}

// Scenario 8: an ordinary error reply is one, and the server lives.
func TestServer_Run_Refused(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		s := start(t, spec(t, transport, script{}))
		if got := text(t, run(t, s, task{Do: "refuse"})); got != "ValueError: no" {
			t.Errorf("got %q", got)
		}
		completes(t, s, "after")
		if s.Err() != nil {
			t.Errorf("got %v of a living server", s.Err())
		}
	})
}

// Scenario 9: one of many is cancelled; its teardown has run when it returns, the others stay.
func TestServer_Run_Cancelled(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		s := start(t, spec(t, transport, script{}))
		why := errors.New("the caller has enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		one := send(ctx, s, task{Do: "delta", Name: "one"})
		var others []<-chan ending
		for range 20 {
			others = append(others, send(context.Background(), s, task{Do: "hold"}))
		}
		run(t, s, task{Do: "wait", When: 21})
		cancel(why)
		e := hosttest.Await(t, "the cancelled end", one)
		if !errors.Is(e.err, why) {
			t.Errorf("got %v, want the cause", e.err)
		}
		if len(e.reply.Partial) != 1 {
			t.Errorf("got partial %+v, want what had arrived", e.reply.Partial)
		}
		if got := text(t, run(t, s, task{Do: "stats"})); got != "held 20 torndown 1 probed 0" {
			t.Errorf("got %q, want one torn down", got)
		}
		for _, ch := range others {
			select {
			case e := <-ch:
				t.Fatalf("another one ended: %v", e.err)
			default:
			}
		}
		run(t, s, task{Do: "die", How: "23"})
		for _, ch := range others {
			if e := hosttest.Await(t, "an end", ch); e.err != s.Err() {
				t.Fatalf("got %v", e.err)
			}
		}
	})
}

// Scenario 12: a process that keeps the output open and has left the session delays the tail only.
func TestServer_Exit_OutputHeld(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	sp := spec(t, "ipc", script{Holder: true})
	sp.Containment = "group"
	s := start(t, sp)
	holder := holderOf(t, s.tail())
	ch := send(context.Background(), s, task{Do: "die", How: "23"})
	hosttest.Await(t, "Exiting", s.proc.Exiting())
	hosttest.Await(t, "the latch", s.Closing())
	select {
	case e := <-ch:
		t.Errorf("ended before the tail was final: %v", e.err)
	default:
	}
	if err := syscall.Kill(holder, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	e := hosttest.Await(t, "the end", ch)
	exited(t, s, sp, row{how: "23", n: 1}, e.err)
}

// holderOf is the process that a tail names as holding something open.
func holderOf(t *testing.T, tail []string) int {
	t.Helper()
	for _, l := range tail {
		if text, ok := strings.CutPrefix(l, "holder "); ok {
			if pid, err := strconv.Atoi(text); err == nil {
				return pid
			}
		}
	}
	t.Fatalf("no holder in %q", tail)
	return 0
}

// A connection that outlives its process in another one costs drain_limit, and no more.
func TestServer_Exit_SocketHeld(t *testing.T) {
	sp := spec(t, "ipc", script{})
	sp.Containment, sp.DrainLimit = "group", 200*time.Millisecond
	s := start(t, sp)
	held := send(context.Background(), s, task{Do: "hold"})
	run(t, s, task{Do: "wait", When: 1})
	if e := run(t, s, task{Do: "leak", Name: "last", How: "23"}); e.err != nil {
		t.Fatal(e.err)
	}
	e := hosttest.Await(t, "the end", held)
	x := exited(t, s, sp, row{how: "23", n: 1}, e.err)
	if err := syscall.Kill(holderOf(t, x.Tail), syscall.SIGKILL); err != nil {
		t.Errorf("the holder is gone: %v", err)
	}
	hosttest.Until(t, "the holder's end", func() bool { return len(marked(markOf(sp))) == 0 })
}

// Scenario 13: the server hangs up and lives; it is stopped.
func TestServer_HungUp(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		sp := spec(t, transport, script{})
		sp.Settle = 50 * time.Millisecond
		s := start(t, sp)
		held := send(context.Background(), s, task{Do: "hold"})
		run(t, s, task{Do: "wait", When: 1})
		if e := run(t, s, task{Do: "hangup", Name: "last"}); e.err != nil {
			t.Fatalf("the reply before it lost: %v", e.err)
		}
		e := hosttest.Await(t, "the end", held)
		var lost *ConnLostError
		if !errors.As(e.err, &lost) {
			t.Fatalf("got %v (%T), want a *ConnLostError", e.err, e.err)
		}
		if lost.PID != s.PID() || lost.InFlight != 1 || lost.Generation != 1 || lost.Cause == nil || lost.LogRel != sp.LogRel {
			t.Errorf("got %+v", lost)
		}
		if f := failure.Of(e.err); f.Kind != "connection_lost" || f.Server == nil {
			t.Errorf("got failure %+v", f)
		}
		if err := syscall.Kill(s.PID(), 0); err == nil {
			t.Error("its process lives")
		}
		if lost.Exit == nil || lost.Exit.Signal != 0 || lost.Exit.Code != 0 || !lost.Exit.Requested || lost.StopTook <= 0 {
			t.Errorf("got exit %+v after %v, want the code 0 that it was asked for", lost.Exit, lost.StopTook)
		}
		for _, text := range []string{e.err.Error(), failure.Of(e.err).Message} {
			if !strings.Contains(text, "1 rollout was in flight; told to end, it exited with code 0 after ") {
				t.Errorf("text %q does not say how it ended", text)
			}
		}
	})
}

// What is not of our protocol is said to be of a newer one: a reply, which is kept with its deltas, and a
// kind of answer, after which nothing can be trusted.
func TestServer_Newer(t *testing.T) {
	sp := spec(t, "ipc", script{})
	sp.Settle = 50 * time.Millisecond
	s := start(t, sp)
	e := run(t, s, task{Do: "odd", Name: "x"})
	if f := failure.Of(e.err); f == nil || f.Kind != "protocol" || f.Message != "server speaks a newer protocol: wire: reply: head: want an episode, got none" {
		t.Errorf("got %v", e.err)
	}
	if want := append(wire.EncodeOK(nil), opening("x")...); !bytes.Equal(e.reply.Raw, want) || len(e.reply.Partial) != 1 {
		t.Errorf("got raw %q, want the reply and its delta; partial %+v", e.reply.Raw, e.reply.Partial)
	}
	e = run(t, s, task{Do: "kind", Name: "y"})
	for _, text := range []string{e.err.Error(), failure.Of(e.err).Message} {
		if !errors.As(e.err, new(*ConnLostError)) || !strings.Contains(text, `: server speaks a newer protocol: answer of kind "final", want delta or reply; 1 rollout`) {
			t.Errorf("got %v, %s", e.err, text)
		}
	}
}

// A process that ended after settle, and before we told it to, was not stopped by us: that is an exit.
func TestServer_HungUp_ThenExited(t *testing.T) {
	sp := spec(t, "ipc", script{})
	s := start(t, sp)
	run(t, s, task{Do: "die", How: "23"})
	hosttest.Await(t, "Exited", s.Exited())
	var x *ExitedError
	if err := s.ended(outcome{lost: io.EOF}, true); !errors.As(err, &x) || x.Code != 23 || x.Requested {
		t.Errorf("got %v, want the exit with code 23", err)
	}
}

// Scenario 13 for a server that somebody else runs: it is not stopped.
func TestServer_Address(t *testing.T) {
	owner := start(t, spec(t, "ipc", script{}))
	s, err := Start(t.Context(), Spec{Address: owner.endpoint})
	if err != nil {
		t.Fatal(err)
	}
	completes(t, s, "one")
	ch := send(context.Background(), s, task{Do: "hold"})
	run(t, owner, task{Do: "wait", When: 1})
	run(t, owner, task{Do: "die", How: "23"})
	e := hosttest.Await(t, "the end", ch)
	var lost *ConnLostError
	if !errors.As(e.err, &lost) || lost.Address != owner.endpoint || lost.PID != 0 || lost.InFlight != 1 {
		t.Fatalf("got %v, want a *ConnLostError", e.err)
	}
	if !strings.Contains(e.err.Error(), "cannot be seen from here") {
		t.Errorf("got %q", e.err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	if err := hosttest.Await(t, "Stop", stopped); err != nil {
		t.Error(err)
	}
}

// Scenario 14: it ignores TERM, so KILL follows; what is in flight learns that we did it.
func TestServer_Stop_Ignored(t *testing.T) {
	sp := spec(t, "ipc", script{IgnoreTerm: true})
	sp.StopGrace = 50 * time.Millisecond
	s := start(t, sp)
	ch := send(context.Background(), s, task{Do: "hold"})
	run(t, s, task{Do: "wait", When: 1})
	stopped := make(chan error, 2)
	for range cap(stopped) {
		go func() { stopped <- s.Stop(context.Background()) }()
	}
	e := hosttest.Await(t, "the end", ch)
	for range cap(stopped) {
		if err := hosttest.Await(t, "Stop", stopped); err != nil {
			t.Error(err)
		}
	}
	var x *ExitedError
	if !errors.As(e.err, &x) || !x.Requested || x.Signal != syscall.SIGKILL || x.InFlight != 1 {
		t.Errorf("got %v, want a requested end by KILL", e.err)
	}
}

// Our own Stop of a server that obeys: code 0, requested.
func TestServer_Stop(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		s := start(t, spec(t, transport, script{}))
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		kept, cancelled := send(context.Background(), s, task{Do: "hold"}), send(ctx, s, task{Do: "hold"})
		run(t, s, task{Do: "wait", When: 2})
		if err := s.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		cancel(why)
		e := hosttest.Await(t, "the end", kept)
		var x *ExitedError
		if !errors.As(e.err, &x) || !x.Requested || x.Signal != 0 || x.Code != 0 || x.InFlight != 2 {
			t.Errorf("got %v, want a requested end with code 0", e.err)
		}
		hosttest.Await(t, "the end", cancelled)
	})
}

// Who was cancelled and then met our own Stop was cancelled: the server's end is no news.
func TestServer_Stop_Cancelled(t *testing.T) {
	s := start(t, spec(t, "ipc", script{}))
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := send(ctx, s, task{Do: "hold"})
	run(t, s, task{Do: "wait", When: 1})
	suspend(t, s)
	cancel(why)
	hosttest.Until(t, "the cancel", func() bool { return s.client.Stats().Cancels == 1 })
	if err := s.Stop(ctx); err != nil { // at once
		t.Fatal(err)
	}
	if e := hosttest.Await(t, "the end", ch); !errors.Is(e.err, why) {
		t.Errorf("got %v, want the cause", e.err)
	}
}

// Scenario 15: much output neither holds the server up nor hides its last words.
func TestServer_Flood(t *testing.T) {
	sp := spec(t, "ipc", script{FloodKiB: 20 << 10})
	if long() {
		sp = spec(t, "ipc", script{FloodKiB: 200 << 10})
	}
	s := start(t, sp)
	completes(t, s, "one")
	e := run(t, s, task{Do: "die", How: "23"})
	exited(t, s, sp, row{how: "23", n: 1}, e.err)
}

// Scenario 16: wevalr is killed; nothing of the tree is left, and no directory.
func TestServer_HostKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs the warden, and /proc to look")
	}
	sp := spec(t, "ipc", script{IgnoreTerm: true})
	sp.StopGrace, sp.Containment = 100*time.Millisecond, "warden"
	arg, err := json.Marshal(sp)
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(sp.Argv[0], "helper:host", string(arg))
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(line)
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	hosttest.Until(t, "the end of the tree", func() bool { return len(marked(markOf(sp))) == 0 })
	hosttest.Until(t, "the end of its directory", func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) })
}

// Scenario 19: stopped for a while, then continued: nothing fails.
func TestServer_Suspended(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		s := start(t, spec(t, transport, script{}))
		suspend(t, s)
		ch := send(context.Background(), s, task{Do: "reply", Name: "late"})
		hosttest.Until(t, "the request is sent", func() bool { return s.client.Stats().Sent >= 2 })
		select {
		case e := <-ch:
			t.Fatalf("ended while the server was stopped: %v", e.err)
		case <-time.After(50 * time.Millisecond): // nothing to wait for: nothing may happen
		}
		if err := syscall.Kill(s.PID(), syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		e := hosttest.Await(t, "the end", ch)
		if e.err != nil {
			t.Fatal(e.err)
		}
		whole(t, e.reply, "late")
	})
}

// The start ends with its ctx, and by start_timeout.
func TestStart_Silent(t *testing.T) {
	sp := spec(t, "ipc", script{Silent: true})
	sp.StartTimeout = 300 * time.Millisecond
	_, err := Start(t.Context(), sp)
	var nr *NotReadyError
	if !errors.As(err, &nr) || nr.Exited != nil || nr.LastProbe == nil && nr.After < sp.StartTimeout {
		t.Errorf("got %v, want a *NotReadyError", err)
	}
	nothingLeft(t, sp)

	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	sp = spec(t, "ipc", script{Silent: true})
	failed := make(chan error, 1)
	go func() { _, err := Start(ctx, sp); failed <- err }()
	hosttest.Until(t, "the child lives", func() bool { return len(marked(markOf(sp))) > 0 })
	cancel(why)
	if err := hosttest.Await(t, "Start", failed); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	nothingLeft(t, sp)
}

func TestStart_NoProgram(t *testing.T) {
	_, err := Start(t.Context(), Spec{Argv: []string{"/nowhere/server", "{address}"}})
	var se *StartError
	if !errors.As(err, &se) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want a *StartError", err)
	}
	if f := failure.Of(err); f.Kind != "not_ready" {
		t.Errorf("got failure %+v", f)
	}
}
