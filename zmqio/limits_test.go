package zmqio

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

func TestClient_TooLarge_AloneEnds(t *testing.T) {
	const limit = 1000
	big, fits := strings.Repeat("x", limit+1), strings.Repeat("x", limit/2)
	for name, tc := range map[string]struct {
		kinds   []string
		parts   []string
		deltas  int  // still returned
		answers bool // the answer was whole: nothing is left to cancel
	}{
		"one reply":          {[]string{"reply"}, []string{big}, 0, true},
		"one delta":          {[]string{"delta"}, []string{big}, 0, false},
		"deltas together":    {[]string{"delta", "delta"}, []string{fits, fits}, 1, false},
		"delta and reply":    {[]string{"delta", "reply"}, []string{fits, fits}, 1, true},
		"much larger, reply": {[]string{"reply"}, []string{strings.Repeat("x", 5<<20)}, 0, true},
		"empty deltas":       {[]string{"delta", "delta", "delta", "delta", "delta", "delta", "delta", "delta", "delta", "delta", "delta", "delta", "delta", "delta", "delta", "delta"}, make([]string, 16), 15, false},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
				id, _, _ := s.hear(t)
				other, _, _ := s.hear(t)
				for i, kind := range tc.kinds {
					s.say(t, id, kind, tc.parts[i])
				}
				if !tc.answers {
					cancel, method, payload := s.hear(t)
					if method != "cancel" || payload != id {
						t.Errorf("got %q %q, want the cancel of %q", method, payload, id)
					}
					s.say(t, id, "delta", "too late")
					s.say(t, cancel, "reply", "")
					s.say(t, id, "reply", "aborted")
				}
				s.say(t, other, "reply", fits)
			})
			c := dial(t, endpoint, Options{ReplyMax: limit, CancelPayload: cancelText})
			call := start(t.Context(), c, "run", "x", nil)
			until(t, "the first sent", func() bool { return c.Stats().Sent == 1 })
			other := start(t.Context(), c, "run", "y", nil)
			got := await(t, "the call", call)
			var e *TooLargeError
			if !errors.As(got.err, &e) || e.Budget || e.Max != limit || e.Bytes <= limit {
				t.Errorf("got %v", got.err)
			}
			if got.reply.Payload != nil || len(got.reply.Deltas) != tc.deltas {
				t.Errorf("got %d deltas and %q", len(got.reply.Deltas), got.reply.Payload)
			}
			if got := await(t, "the other call", other); got.err != nil {
				t.Errorf("the other call: got %v", got.err)
			}
			if s := c.Stats(); s.Draining != 0 || c.held != 0 {
				t.Errorf("got %+v, %d bytes held", s, c.held)
			}
		})
	}
}

func TestClient_Budget_NewestEnd(t *testing.T) {
	const budget = 10_000
	part := strings.Repeat("x", budget/4)
	goOn := make(chan struct{})
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		var ids []string
		for range 4 {
			id, _, _ := s.hear(t)
			ids = append(ids, id)
			if len(ids) < 4 {
				s.say(t, id, "delta", part)
			}
		}
		s.say(t, ids[0], "delta", part) // the fourth part: 64 bytes each too many
		cancel, _, payload := s.hear(t)
		if payload != ids[2] {
			t.Errorf("cancelled %q, want the newest that holds bytes, %q of %q", payload, ids[2], ids)
		}
		s.say(t, cancel, "reply", "")
		<-goOn
		for _, id := range ids {
			s.say(t, id, "reply", "end")
		}
		_, _, _, _ = s.request()
	})
	c := dial(t, endpoint, Options{Budget: budget, CancelPayload: cancelText})
	var calls []<-chan outcome
	for i := range 4 {
		calls = append(calls, start(t.Context(), c, "run", "x", nil))
		until(t, "the sending", func() bool { return c.Stats().Sent > int64(i) })
	}
	got := await(t, "the newest", calls[2])
	var e *TooLargeError
	if !errors.As(got.err, &e) || !e.Budget || got.reply.Deltas != nil {
		t.Errorf("got %v, %d deltas", got.err, len(got.reply.Deltas))
	}
	close(goOn)
	for i, n := range map[int]int{0: 2, 1: 1, 3: 0} {
		if got := await(t, "another call", calls[i]); got.err != nil || len(got.reply.Deltas) != n {
			t.Errorf("call %d: got %d deltas, %v", i, len(got.reply.Deltas), got.err)
		}
	}
	if c.Close(); c.held != 0 {
		t.Errorf("%d bytes held", c.held)
	}
}

func TestClient_OverBudget_AdmitsNone(t *testing.T) {
	c := &Client{opt: Options{MaxPending: 2, Budget: 10}, held: 11}
	if c.hasRoom() {
		t.Error("admits over its budget")
	}
	if c.held = 10; !c.hasRoom() {
		t.Error("does not admit within its budget")
	}
}

// A large reply is one allocation of its size: what the kernel gives goes straight into it.
func TestClient_LargeReply_IsNotCopied(t *testing.T) {
	size := 64 << 20
	body := []byte(strings.Repeat("x", size))
	endpoint := scripted(t, "ipc://"+socketPath(t), "ROUTER", func(s *script) {
		id, _, _ := s.hear(t)
		head := wireMessage(id, "reply", "")
		head = head[:len(head)-2]
		_, _ = s.Write(append(head, flagLong, 0, 0, 0, 0, 4, 0, 0, 0))
		if _, err := s.Write(body); err != nil {
			t.Error(err)
		}
	})
	c := dial(t, endpoint, Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := c.Call(t.Context(), "run", nil, nil)
	runtime.ReadMemStats(&after)
	if err != nil || len(r.Payload) != size {
		t.Fatalf("got %d bytes, %v", len(r.Payload), err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(size)*11/10 {
		t.Errorf("allocated %d bytes for a reply of %d", got, size)
	}
}

// An idle connection holds nothing of the answer that came last.
func TestClient_Idle_HoldsNoAnswer(t *testing.T) {
	s := listen(t, "ipc://"+socketPath(t), echo, ServerOptions{})
	c := dial(t, s.Endpoint(), Options{})
	freed := make(chan struct{})
	func() {
		r, err := c.Call(t.Context(), "health", make([]byte, 1<<20), nil)
		if err != nil {
			t.Fatal(err)
		}
		runtime.AddCleanup(&r.Payload[0], func(int) { close(freed) }, 0)
	}()
	until(t, "the answer's end", func() bool {
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	})
}
