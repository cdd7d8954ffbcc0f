package zmqio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestClient_Call_OutOfOrder(t *testing.T) {
	const calls, group = 4000, 200
	both(t, func(t *testing.T, endpoint string) {
		rnd := rand.New(rand.NewPCG(1, 2))
		endpoint = scripted(t, endpoint, "ROUTER", func(s *script) {
			for range calls / group {
				var out [][]string
				for range group {
					id, _, payload := s.hear(t)
					out = append(out, []string{id, "reply", payload + strings.Repeat("x", rnd.IntN(2000))})
					s.say(t, id, "delta", payload)
				}
				rnd.Shuffle(group, func(i, j int) { out[i], out[j] = out[j], out[i] })
				for _, m := range out {
					s.say(t, m...)
				}
			}
			_, _, _, err := s.request()
			if err != io.EOF {
				t.Errorf("after the last call: got %v, want EOF", err)
			}
		})
		c := dial(t, endpoint, Options{})
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				want := fmt.Sprintf("payload %d.", i)
				var p Progress
				r, err := c.Call(t.Context(), "run", []byte(want), &p)
				if err != nil || !strings.HasPrefix(string(r.Payload), want) || len(r.Deltas) != 1 || string(r.Deltas[0]) != want {
					t.Errorf("call %d: got %q %q, %v", i, r.Deltas, r.Payload, err)
				}
				if p.Deltas() != 1 || p.Bytes() != int64(len(want)+len(r.Payload)) || p.Sent().IsZero() || p.Last().Before(p.Sent()) {
					t.Errorf("call %d: progress %d %d %v %v", i, p.Deltas(), p.Bytes(), p.Sent(), p.Last())
				}
			})
		}
		wg.Wait()
		if s := c.Stats(); s != (Stats{Sent: calls, Received: calls}) {
			t.Errorf("got %+v", s)
		}
		_ = c.Close()
	})
}

func TestClient_ConnectionCut_EndsAllPending(t *testing.T) {
	const calls = 1000
	both(t, func(t *testing.T, endpoint string) {
		cut := make(chan struct{})
		s := listen(t, endpoint, func(ctx context.Context, _ *Request) []byte {
			<-ctx.Done()
			return nil
		}, ServerOptions{})
		c := dial(t, s.Endpoint(), Options{})
		var wg sync.WaitGroup
		var mu sync.Mutex
		var slowest time.Duration
		var at time.Time
		for range calls {
			wg.Go(func() {
				_, err := c.Call(t.Context(), "run", []byte("x"), nil)
				<-cut
				mu.Lock()
				slowest = max(slowest, time.Since(at))
				mu.Unlock()
				if e := asConn(t, err); !e.Sent {
					t.Errorf("got %v, not sent", e)
				}
			})
		}
		until(t, "the sending", func() bool { return c.Stats().Sent == calls })
		at = time.Now()
		close(cut)
		_ = s.Close()
		wg.Wait()
		await(t, "Done", c.Done())
		t.Logf("from the cut to the last error: %v", slowest)
		if s := c.Stats(); s.Pending != 0 || s.Draining != 0 {
			t.Errorf("got %+v", s)
		}
		asConn(t, c.Err())
		_, err := c.Call(t.Context(), "health", nil, nil)
		if e := asConn(t, err); e.Sent {
			t.Errorf("a call after the end: got %v, want one that was not sent", err)
		}
	})
}

func TestClient_PeerTakesNothing_StallEnds(t *testing.T) {
	both(t, func(t *testing.T, endpoint string) {
		over := make(chan struct{})
		endpoint = scripted(t, endpoint, "ROUTER", func(*script) { <-over })
		defer close(over)
		c := dial(t, endpoint, Options{WriteStall: 100 * time.Millisecond})
		got := await(t, "the stall", start(t.Context(), c, "run", strings.Repeat("x", 64<<20), nil))
		var stall *StallError
		if e := asConn(t, got.err); !e.Sent || !errors.As(got.err, &stall) {
			t.Errorf("got %v", got.err)
		}
	})
}

func TestClient_WriteError_ReaderGoesOn(t *testing.T) {
	shut, answer := make(chan struct{}), make(chan struct{})
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		a, _, _ := s.hear(t)
		b, _, _ := s.hear(t)
		_, _, _ = s.hear(t)
		uc, _ := s.Conn.(*net.UnixConn)
		_ = uc.CloseRead()
		close(shut)
		<-answer
		s.say(t, a, "delta", "half")
		s.say(t, b, "reply", "whole")
	})
	c := dial(t, endpoint, Options{CancelPayload: cancelText})
	a := start(t.Context(), c, "run", "a", nil)
	until(t, "a sent", func() bool { return c.Stats().Sent == 1 })
	b := start(t.Context(), c, "run", "b", nil)
	until(t, "b sent", func() bool { return c.Stats().Sent == 2 })
	ctx, cancel := context.WithCancelCause(t.Context())
	other := start(ctx, c, "run", "c", nil)
	await(t, "the shut", shut)
	lost := start(t.Context(), c, "run", strings.Repeat("d", 1<<20), nil) // so that zmq4 meets the error
	until(t, "the write error", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.noWriter
	})
	_, err := c.Call(t.Context(), "run", []byte("e"), nil)
	if e := asConn(t, err); e.Sent {
		t.Errorf("e: got %v, sent", err)
	}
	select {
	case <-c.Done():
		t.Fatal("the reader ended with the writer")
	default:
	}
	cancel(errors.New("no more"))
	if got := await(t, "the cancel without a writer", other); got.err == nil || got.err.Error() != "no more" {
		t.Errorf("got %v, want the cause", got.err)
	}
	close(answer)
	if got := await(t, "b", b); got.err != nil || string(got.reply.Payload) != "whole" {
		t.Errorf("b: got %q, %v", got.reply.Payload, got.err)
	}
	if e := asConn(t, await(t, "d", lost).err); !e.Sent {
		t.Errorf("d: got %v, not sent", e)
	}
	got := await(t, "a", a)
	if e := asConn(t, got.err); !e.Sent || len(got.reply.Deltas) != 1 || string(got.reply.Deltas[0]) != "half" {
		t.Errorf("a: got %q, %v", got.reply.Deltas, got.err)
	}
}

func TestClient_WriteError_PeerStays_Ends(t *testing.T) {
	shut, over := make(chan struct{}), make(chan struct{})
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		uc, _ := s.Conn.(*net.UnixConn)
		_ = uc.CloseRead()
		close(shut)
		<-over
	})
	defer close(over)
	c := dial(t, endpoint, Options{WriteStall: 50 * time.Millisecond})
	await(t, "the shut", shut)
	got := await(t, "the end", start(t.Context(), c, "run", "x", nil))
	asConn(t, got.err)
	await(t, "Done", c.Done())
}
