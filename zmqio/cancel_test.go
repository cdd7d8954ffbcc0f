package zmqio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var errCause = errors.New("not wanted any more")

func TestCancel_Queued_NothingOnTheWire(t *testing.T) {
	goOn := make(chan struct{})
	type request struct{ method, payload string }
	heard := make(chan request, 4)
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		<-goOn
		for range 2 {
			id, method, payload := s.hear(t)
			heard <- request{method, payload[:1]}
			s.say(t, id, "reply", "x")
		}
	})
	c := dial(t, endpoint, Options{CancelPayload: cancelText})
	first := start(t.Context(), c, "run", strings.Repeat("1", 32<<20), nil) // the writer is in the middle of it
	until(t, "the first sent", func() bool { return c.Stats().Sent == 1 })
	ctx, cancel := context.WithCancelCause(t.Context())
	second := start(ctx, c, "run", "2", nil)
	until(t, "the second queued", func() bool { return c.Stats().Pending == 2 })
	cancel(errCause)
	if got := await(t, "the second", second); !errors.Is(got.err, errCause) {
		t.Errorf("got %v", got.err)
	}
	third := start(t.Context(), c, "run", "3", nil)
	close(goOn)
	for _, ch := range []<-chan outcome{first, third} {
		if got := await(t, "a reply", ch); got.err != nil {
			t.Error(got.err)
		}
	}
	if a, b := <-heard, <-heard; a != (request{"run", "1"}) || b != (request{"run", "3"}) {
		t.Errorf("on the wire: %v %v", a, b)
	}
	if s := c.Stats(); s != (Stats{Sent: 2, Received: 2}) {
		t.Errorf("got %+v", s)
	}
}

func TestCancel_Sent(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(t *testing.T, s *script, run, cancel string)
		grace  time.Duration
		err    error
		reply  string
		stats  Stats
	}{
		"aborted": {
			answer: func(t *testing.T, s *script, run, cancel string) {
				s.say(t, cancel, "reply", "true")
				s.say(t, run, "reply", "aborted")
			},
			err: errCause, stats: Stats{Sent: 2, Received: 2, Cancels: 1, Drained: 2},
		},
		"the reply was first": {
			answer: func(t *testing.T, s *script, run, cancel string) {
				s.say(t, run, "reply", "finished")
				s.say(t, cancel, "reply", "false")
			},
			reply: "finished", stats: Stats{Sent: 2, Received: 2, Cancels: 1, Drained: 1},
		},
		"no answer to the run": {
			answer: func(t *testing.T, s *script, run, cancel string) { s.say(t, cancel, "reply", "true") },
			grace:  30 * time.Millisecond, err: errCause,
			stats: Stats{Draining: 1, Sent: 2, Received: 1, Cancels: 1, Drained: 1},
		},
		"no answer at all": {
			answer: func(*testing.T, *script, string, string) {},
			grace:  30 * time.Millisecond, err: errCause,
			stats: Stats{Draining: 2, Sent: 2, Cancels: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			begun := make(chan struct{})
			answered := make(chan struct{})
			endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
				run, _, _ := s.hear(t)
				s.say(t, run, "delta", "begun")
				close(begun)
				cancel, method, payload := s.hear(t)
				if method != "cancel" || payload != run {
					t.Errorf("got %q %q, want the cancel of %q", method, payload, run)
				}
				tc.answer(t, s, run, cancel)
				close(answered)
				<-over
			})
			defer close(over)
			c := dial(t, endpoint, Options{CancelPayload: cancelText, CancelGrace: tc.grace})
			ctx, cancel := context.WithCancelCause(t.Context())
			var p Progress
			call := start(ctx, c, "run", "x", &p)
			await(t, "the begin", begun)
			until(t, "the delta", func() bool { return p.Deltas() == 1 })
			cancel(errCause)
			got := await(t, "the call's end", call)
			if !errors.Is(got.err, tc.err) || string(got.reply.Payload) != tc.reply || len(got.reply.Deltas) != 1 {
				t.Errorf("got %q %q, %v", got.reply.Deltas, got.reply.Payload, got.err)
			}
			await(t, "the answers", answered)
			until(t, "the draining", func() bool { return c.Stats() == tc.stats || t.Failed() })
		})
	}
}

func TestCancel_LateReply_IsCounted(t *testing.T) {
	late := make(chan struct{})
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		run, _, _ := s.hear(t)
		<-late
		s.say(t, run, "delta", "late")
		s.say(t, run, "reply", "late")
		id, _, _ := s.hear(t)
		s.say(t, id, "reply", "")
	})
	c := dial(t, endpoint, Options{}) // without CancelPayload: only abandoned
	ctx, cancel := context.WithCancelCause(t.Context())
	call := start(ctx, c, "run", "x", nil)
	until(t, "the sending", func() bool { return c.Stats().Sent == 1 })
	cancel(errCause)
	if got := await(t, "the call's end", call); !errors.Is(got.err, errCause) || got.reply.Deltas != nil {
		t.Errorf("got %v, %v", got.reply.Deltas, got.err)
	}
	if s := c.Stats(); s.Draining != 1 || s.Pending != 0 {
		t.Errorf("got %+v", s)
	}
	close(late)
	if _, err := c.Call(t.Context(), "health", nil, nil); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s != (Stats{Sent: 2, Received: 2, Drained: 1, Late: 1}) {
		t.Errorf("got %+v", s)
	}
}

func TestCancel_ConnectionEndsWhileDraining(t *testing.T) {
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		_, _, _ = s.hear(t)
		_, _, _ = s.hear(t) // the cancel; then hang up
	})
	c := dial(t, endpoint, Options{CancelPayload: cancelText})
	ctx, cancel := context.WithCancel(t.Context())
	call := start(ctx, c, "run", "x", nil)
	until(t, "the sending", func() bool { return c.Stats().Sent == 1 })
	cancel()
	if e := asConn(t, await(t, "the call's end", call).err); !e.Sent {
		t.Errorf("got %v", e)
	}
}

func TestCancel_EndedContext_SendsNothing(t *testing.T) {
	s := listen(t, "ipc://"+socketPath(t), echo, ServerOptions{})
	c := dial(t, s.Endpoint(), Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errCause)
	if _, err := c.Call(ctx, "run", nil, nil); !errors.Is(err, errCause) {
		t.Errorf("got %v", err)
	}
	if s := c.Stats(); s != (Stats{}) {
		t.Errorf("got %+v", s)
	}
}

func TestCancel_AfterTheReply_SendsNothing(t *testing.T) {
	s := listen(t, "ipc://"+socketPath(t), echo, ServerOptions{})
	c := dial(t, s.Endpoint(), Options{CancelPayload: cancelText})
	k, err := c.admit(t.Context(), newCall("run", nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the reply", k.done)
	c.abandon(k)
	if s := c.Stats(); k.err != nil || s.Cancels != 0 {
		t.Errorf("got %v, %+v", k.err, s)
	}
}

// The reply and the cancel in the same instant: each call ends in one of the two ways, and every
// answer is accounted for.
func TestCancel_RacesReply(t *testing.T) {
	rounds := 2000
	if os.Getenv("WEVALR_LONG") == "1" {
		rounds = 100_000
	}
	var gates sync.Map // payload → closed when its reply is about to go out
	s := listen(t, "ipc://"+socketPath(t), func(ctx context.Context, req *Request) []byte {
		if req.Method == "cancel" {
			return req.CancelRun(string(req.Payload), func(bool) []byte { return nil })
		}
		if gate, ok := gates.LoadAndDelete(string(req.Payload)); ok {
			close(gate.(chan struct{}))
		}
		return req.Payload
	}, ServerOptions{})
	c := dial(t, s.Endpoint(), Options{CancelPayload: cancelText})
	var wg sync.WaitGroup
	var mu sync.Mutex
	won, lost := 0, 0
	for worker := range 4 {
		wg.Go(func() {
			for i := range rounds / 4 {
				ctx, cancel := context.WithCancelCause(t.Context())
				payload, gate := fmt.Sprintf("%d of %d", i, worker), make(chan struct{})
				gates.Store(payload, gate)
				ch := start(ctx, c, "run", payload, nil)
				<-gate
				cancel(errCause)
				got := <-ch
				mu.Lock()
				switch {
				case got.err == nil && string(got.reply.Payload) == payload:
					won++
				case errors.Is(got.err, errCause) && got.reply.Payload == nil:
					lost++
				default:
					t.Errorf("got %q, %v", got.reply.Payload, got.err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	until(t, "the draining", func() bool { return c.Stats().Draining == 0 })
	st := c.Stats()
	t.Logf("%d replies, %d cancels, %+v", won, lost, st)
	if st.Sent != st.Received || st.Pending != 0 || st.Late != 0 || won+lost != rounds {
		t.Errorf("got %d + %d of %d, %+v", won, lost, rounds, st)
	}
}

// A storm of cancels against runs that only end by them: two answers each, none unknown.
func TestCancel_Storm_AllDrained(t *testing.T) {
	const calls = 500
	s := listen(t, "ipc://"+socketPath(t), func(ctx context.Context, req *Request) []byte {
		if req.Method == "cancel" {
			return req.CancelRun(string(req.Payload), func(bool) []byte { return nil })
		}
		<-ctx.Done()
		return []byte("aborted")
	}, ServerOptions{MaxRuns: 10})
	c := dial(t, s.Endpoint(), Options{CancelPayload: cancelText})
	ctx, cancel := context.WithCancelCause(t.Context())
	var chans []<-chan outcome
	for range calls {
		chans = append(chans, start(ctx, c, "run", "x", nil))
	}
	until(t, "the sending", func() bool { return c.Stats().Sent == calls })
	cancel(errCause)
	for _, ch := range chans {
		if got := await(t, "a call's end", ch); !errors.Is(got.err, errCause) {
			t.Fatalf("got %v", got.err)
		}
	}
	if s := c.Stats(); s != (Stats{Sent: 2 * calls, Received: 2 * calls, Cancels: calls, Drained: 2 * calls}) {
		t.Errorf("got %+v", s)
	}
}
