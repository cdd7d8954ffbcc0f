package zmqio

import (
	"context"
	"errors"
	"testing"
)

// first is a hook that tells what it was given.
func first(got chan string) *Progress {
	return &Progress{OnFirst: func(payload []byte) { got <- string(payload) }}
}

func TestProgress_OnFirst_OnceAndBeforeTheReply(t *testing.T) {
	goOn := make(chan struct{})
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		id, _, _ := s.hear(t)
		s.say(t, id, "delta", "1")
		<-goOn
		s.say(t, id, "delta", "2")
		s.say(t, id, "reply", "3")
		id, _, _ = s.hear(t)
		s.say(t, id, "reply", "none")
	})
	c := dial(t, endpoint, Options{})
	heard := make(chan string, 2)
	p := first(heard)
	call := start(t.Context(), c, "run", "x", p)
	if got := await(t, "the first delta", heard); got != "1" {
		t.Errorf("got %q", got)
	}
	close(goOn)
	if got := await(t, "the call", call); got.err != nil || len(got.reply.Deltas) != 2 || p.Deltas() != 2 {
		t.Errorf("got %q, %v", got.reply.Deltas, got.err)
	}
	if got := await(t, "a call without deltas", start(t.Context(), c, "run", "x", p)); got.err != nil {
		t.Error(got.err)
	}
	if len(heard) != 0 {
		t.Errorf("called again, with %q", <-heard)
	}
}

// What the hook sees may be the reason to cancel the call: then no answer but those to the cancel is
// waited for.
func TestProgress_OnFirst_CancelsItsCall(t *testing.T) {
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		run, _, _ := s.hear(t)
		s.say(t, run, "delta", "wrong")
		cancel, method, _ := s.hear(t)
		if method != "cancel" {
			t.Errorf("got %q, want the cancel", method)
		}
		s.say(t, cancel, "reply", "")
		s.say(t, run, "reply", "aborted")
	})
	c := dial(t, endpoint, Options{CancelPayload: cancelText})
	ctx, cancel := context.WithCancelCause(t.Context())
	called := 0
	p := &Progress{OnFirst: func([]byte) { called++; cancel(errCause) }}
	got := await(t, "the call's end", start(ctx, c, "run", "x", p))
	if !errors.Is(got.err, errCause) || called != 1 || len(got.reply.Deltas) != 1 {
		t.Errorf("called %d times, got %q, %v", called, got.reply.Deltas, got.err)
	}
}

// The first delta of a call that is already being cancelled is shown as well, however it ends.
func TestProgress_OnFirst_CancelledBefore_StillCalled(t *testing.T) {
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		run, _, _ := s.hear(t)
		_, _, _ = s.hear(t)
		s.say(t, run, "delta", "late")
	})
	c := dial(t, endpoint, Options{CancelPayload: cancelText})
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan string, 2)
	call := start(ctx, c, "run", "x", first(heard))
	until(t, "the sending", func() bool { return c.Stats().Sent == 1 })
	cancel()
	asConn(t, await(t, "the call's end", call).err)
	if len(heard) != 1 || <-heard != "late" {
		t.Error("not called")
	}
}

// A hook that does not return keeps its own call; all others go on, and the connection can end.
func TestProgress_OnFirst_Slow_OthersGoOn(t *testing.T) {
	s := listen(t, "ipc://"+socketPath(t), echo, ServerOptions{})
	c := dial(t, s.Endpoint(), Options{})
	begun, over := make(chan struct{}), make(chan struct{})
	slow := start(t.Context(), c, "run", "slow", &Progress{OnFirst: func([]byte) {
		close(begun)
		<-over
	}})
	await(t, "the hook", begun)
	for range 100 {
		if got := await(t, "another call", start(t.Context(), c, "run", "x", nil)); got.err != nil {
			t.Fatal(got.err)
		}
	}
	until(t, "its reply", func() bool { return c.Stats().Received == 101 })
	_ = c.Close()
	select {
	case <-slow:
		t.Error("the call did not wait for its hook")
	default:
	}
	close(over)
	if got := await(t, "the slow call", slow); got.err != nil || string(got.reply.Payload) != "slow" {
		t.Errorf("got %q, %v: the reply had arrived", got.reply.Payload, got.err)
	}
}

// A panic is that of the call's own goroutine. The request is cancelled and drained, and nothing of
// it is held.
func TestProgress_OnFirst_Panics_ConnectionLives(t *testing.T) {
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		run, _, _ := s.hear(t)
		s.say(t, run, "delta", "x")
		cancel, _, payload := s.hear(t)
		if payload != run {
			t.Errorf("got %q, want the cancel of %q", payload, run)
		}
		s.say(t, cancel, "reply", "")
		s.say(t, run, "reply", "aborted")
		id, _, _ := s.hear(t)
		s.say(t, id, "reply", "fine")
	})
	c := dial(t, endpoint, Options{CancelPayload: cancelText})
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		_, _ = c.Call(t.Context(), "run", []byte("x"), &Progress{OnFirst: func([]byte) { panic("mine") }})
	}()
	if got := await(t, "the panic", panicked); got != "mine" {
		t.Errorf("got %v, want the hook's panic", got)
	}
	if got := await(t, "another call", start(t.Context(), c, "run", "x", nil)); got.err != nil {
		t.Error(got.err)
	}
	if s := c.Stats(); s != (Stats{Sent: 3, Received: 3, Cancels: 1, Drained: 2, Late: 1}) || c.held != 0 {
		t.Errorf("got %+v, %d bytes held", s, c.held)
	}
}
