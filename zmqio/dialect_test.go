package zmqio

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestDial_BeforeBind(t *testing.T) {
	endpoint := "ipc://" + socketPath(t)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer stop()
	if _, err := Dial(ctx, endpoint, Options{}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no such file") {
		t.Fatalf("nobody there: got %v", err)
	}
	dialed := make(chan error, 1)
	go func() {
		c, err := Dial(t.Context(), endpoint, Options{DialRetry: time.Millisecond})
		if err == nil {
			_, err = c.Call(t.Context(), "health", nil, nil)
			_ = c.Close()
		}
		dialed <- err
	}()
	listen(t, endpoint, echo, ServerOptions{})
	if err := await(t, "the dial", dialed); err != nil {
		t.Fatal(err)
	}
}

func TestDial_SilentPeer_EndsWithContext(t *testing.T) {
	over := make(chan struct{})
	endpoint := scripted(t, "ipc://"+socketPath(t), "", func(*script) { <-over })
	defer close(over)
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	dialed := make(chan error, 1)
	go func() {
		_, err := Dial(ctx, endpoint, Options{})
		dialed <- err
	}()
	if err := await(t, "the end of Dial", dialed); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
}

func TestDial_SilentPeer_HandshakeTimesOut(t *testing.T) {
	over := make(chan struct{})
	endpoint := scripted(t, "ipc://"+socketPath(t), "", func(*script) { <-over })
	defer close(over)
	network, addr, _ := split(endpoint)
	_, err := dialOnce(t.Context(), network, addr, Options{Handshake: 20 * time.Millisecond}.withDefaults())
	if err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Fatalf("got %v", err)
	}
}

func TestClient_Ping_AnsweredByWriter(t *testing.T) {
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		var messages []string
		ping := func(ctx string) { // the PONG may come before or after a request, never inside one
			if _, err := s.Write(command("PING", "\x00\x01"+ctx)); err != nil {
				t.Error(err)
			}
			for {
				f, err := s.frame()
				if err != nil {
					t.Error(err)
					return
				}
				if f.flags&flagCommand != 0 {
					if want := "\x04PONG" + ctx; string(f.body) != want || len(messages)%3 != 0 {
						t.Errorf("got %q after %d frames, want %q", f.body, len(messages), want)
					}
					return
				}
				messages = append(messages, string(f.body))
			}
		}
		ping("idle")
		ping("")
		for len(messages) == 0 {
			ping("waiting")
		}
		id := messages[0]
		s.say(t, id, "delta", "1")
		ping("busy")
		s.say(t, id, "reply", "2")
	})
	c := dial(t, endpoint, Options{})
	if r, err := c.Call(t.Context(), "run", nil, nil); err != nil || string(r.Payload) != "2" {
		t.Fatalf("got %q, %v", r.Payload, err)
	}
}

func TestClient_TwoFrames_IsLegacy(t *testing.T) {
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		for range 2 {
			id, _, payload := s.hear(t)
			s.say(t, id, payload+"!")
		}
		id, _, _ := s.hear(t)
		s.say(t, id, "reply", "three")
	})
	c := dial(t, endpoint, Options{})
	for range 2 {
		r, err := c.Call(t.Context(), "run", []byte("old"), nil)
		if err != nil || !r.Legacy || string(r.Payload) != "old!" || r.Deltas != nil {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	_, err := c.Call(t.Context(), "run", nil, nil)
	var pe *ProtocolError
	if !errors.As(err, &pe) || !strings.Contains(pe.Text, "3 frames") {
		t.Fatalf("a second dialect: got %v", err)
	}
}

func TestClient_WrongAnswer_EndsConnection(t *testing.T) {
	const unknown = "0123456789abcdef0123456789abcdef"
	for name, tc := range map[string]struct {
		answer func(id string) []string
		want   string
	}{
		"one frame":      {func(id string) []string { return []string{id} }, "1 frames"},
		"four frames":    {func(id string) []string { return []string{id, "", "reply", "x"} }, "4 frames"},
		"many frames":    {func(id string) []string { return strings.Split(strings.Repeat("x", 20), "") }, "frames of a message"},
		"unknown id":     {func(string) []string { return []string{unknown, "reply", "x"} }, "never asked"},
		"id of tomorrow": {func(id string) []string { return []string{id[:16] + "ffffffffffffffff", "reply", "x"} }, "never asked"},
		"short id":       {func(id string) []string { return []string{id[:8], "reply", "x"} }, "never asked"},
		"empty id":       {func(string) []string { return []string{"", "reply", "x"} }, "never asked"},
		"odd kind":       {func(id string) []string { return []string{id, "rePly", "x"} }, `kind "rePly"`},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
				id, _, _ := s.hear(t)
				s.say(t, tc.answer(id)...)
				_, _, _, _ = s.request()
			})
			c := dial(t, endpoint, Options{})
			got := await(t, "the error", start(t.Context(), c, "run", "x", nil))
			asConn(t, got.err)
			if !strings.Contains(got.err.Error(), tc.want) {
				t.Errorf("got %v, want %q", got.err, tc.want)
			}
		})
	}
}

func TestClient_CutInsideAnswer_IsNoAnswer(t *testing.T) {
	for name, left := range map[string]int{"inside the payload": 1, "after the kind": 11, "inside a header": 10, "after the id": 18} {
		t.Run(name, func(t *testing.T) {
			endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
				id, _, _ := s.hear(t)
				b := wireMessage(id, "reply", "9 bytes..")
				_, _ = s.Write(b[:len(b)-left])
			})
			c := dial(t, endpoint, Options{})
			got := await(t, "the error", start(t.Context(), c, "run", "x", nil))
			if asConn(t, got.err); got.reply.Payload != nil || !strings.Contains(got.err.Error(), "unexpected EOF") {
				t.Errorf("got %q, %v", got.reply.Payload, got.err)
			}
		})
	}
}

func TestClient_SecondReply_IsCounted(t *testing.T) {
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		id, _, _ := s.hear(t)
		s.say(t, id, "reply", "x")
		s.say(t, id, "reply", "x")
		s.say(t, id, "delta", "x")
		id, _, _ = s.hear(t)
		s.say(t, id, "reply", "y")
	})
	c := dial(t, endpoint, Options{})
	for range 2 {
		if _, err := c.Call(t.Context(), "run", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Late != 1 || s.Received != 2 {
		t.Errorf("got %+v", s)
	}
}

func TestClient_Refuse_LetsSentGoOn(t *testing.T) {
	got, goOn := make(chan struct{}), make(chan struct{})
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		id, _, _ := s.hear(t)
		close(got)
		<-goOn
		s.say(t, id, "reply", "x")
		_, _, _, _ = s.request()
	})
	c := dial(t, endpoint, Options{MaxPending: 1})
	first := start(t.Context(), c, "run", "1", nil)
	await(t, "the first", got)
	second := start(t.Context(), c, "run", "2", nil)
	until(t, "the second's waiting", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.waiting) == 1
	})
	cause := errors.New("process exited")
	c.Refuse(cause)
	c.Refuse(errors.New("later"))
	_, err := c.Call(t.Context(), "run", nil, nil)
	for _, err := range []error{await(t, "the second", second).err, err} {
		if e := asConn(t, err); e.Sent || !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	}
	close(goOn)
	if got := await(t, "the first's reply", first); got.err != nil {
		t.Error(got.err)
	}
}

func TestClient_Fail_EndsEachOnce(t *testing.T) {
	const calls = 200
	for range 20 {
		s := listen(t, "ipc://"+socketPath(t), echo, ServerOptions{})
		c := dial(t, s.Endpoint(), Options{})
		cause := errors.New("exit 23")
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				r, err := c.Call(t.Context(), "run", []byte("x"), nil)
				if err == nil && string(r.Payload) != "x" {
					t.Errorf("got %q", r.Payload)
				}
				if err != nil && !errors.Is(err, cause) {
					t.Errorf("got %v", err)
				}
				if i == calls/2 {
					c.Fail(cause)
					c.Fail(errors.New("later"))
				}
			})
		}
		wg.Wait()
		await(t, "Done", c.Done())
		if !errors.Is(c.Err(), cause) {
			t.Errorf("got %v", c.Err())
		}
		_ = c.Close()
		_ = s.Close()
	}
}

func TestClient_MaxPending_Waits(t *testing.T) {
	goOn := make(chan struct{})
	s := listen(t, "ipc://"+socketPath(t), func(ctx context.Context, req *Request) []byte {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return req.Payload
	}, ServerOptions{})
	c := dial(t, s.Endpoint(), Options{MaxPending: 2})
	var calls []<-chan outcome
	for range 10 {
		calls = append(calls, start(t.Context(), c, "run", "x", nil))
	}
	until(t, "the waiting", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.waiting) == 8
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	impatient := start(ctx, c, "run", "x", nil)
	cause := errors.New("bored")
	cancel(cause)
	if got := await(t, "the impatient", impatient); !errors.Is(got.err, cause) {
		t.Errorf("got %v", got.err)
	}
	if s := c.Stats(); s.Pending != 2 {
		t.Errorf("got %+v", s)
	}
	close(goOn)
	for _, ch := range calls {
		if got := await(t, "a call", ch); got.err != nil {
			t.Error(got.err)
		}
	}
}

func TestClient_Close_DuringWrites(t *testing.T) {
	both(t, func(t *testing.T, endpoint string) {
		s := listen(t, endpoint, echo, ServerOptions{})
		for range 10 {
			c := dial(t, s.Endpoint(), Options{})
			var wg sync.WaitGroup
			big := strings.Repeat("x", 1<<20)
			for range 16 {
				wg.Go(func() {
					for {
						r, err := c.Call(t.Context(), "run", []byte(big), nil)
						if err != nil {
							if e := asConn(t, err); !errors.Is(e, ErrClosed) {
								t.Errorf("got %v", err)
							}
							return
						}
						if len(r.Payload) != len(big) {
							t.Errorf("got %d bytes", len(r.Payload))
						}
					}
				})
			}
			until(t, "traffic", func() bool { return c.Stats().Received > 4 })
			wg.Go(func() { _ = c.Close() })
			_ = c.Close()
			wg.Wait()
			_ = c.Close()
		}
	})
}

func TestErrors_ZeroValues(t *testing.T) {
	for _, err := range []error{
		&ConnError{}, (*ConnError)(nil), &TooLargeError{}, (*TooLargeError)(nil), &ProtocolError{}, (*ProtocolError)(nil),
		&LimitError{}, (*LimitError)(nil), &StallError{}, (*StallError)(nil), &InUseError{}, (*InUseError)(nil),
	} {
		if err.Error() == "" {
			t.Errorf("%T: empty", err)
		}
		_ = errors.Unwrap(err)
	}
}
