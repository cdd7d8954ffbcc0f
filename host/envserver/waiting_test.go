package envserver

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// A call that waits gives signs while its endpoint answers others, and none when it answers nobody.
func TestWaiting_During(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := waiting{every: time.Second}
		var signs atomic.Int64
		var paused atomic.Bool
		stop := w.during(func() { signs.Add(1) }, &paused)
		later := func(what string, d time.Duration, want int64) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			if got := signs.Swap(0); got != want {
				t.Errorf("%s: got %d signs, want %d", what, got, want)
			}
		}
		later("a silent endpoint", 10*time.Second+time.Millisecond, 0)
		w.heard.Add(100)
		later("it answers others", 10*time.Second, 1)
		for range 5 {
			w.heard.Add(1)
			later("again and again", time.Second, 1)
		}
		later("silent again", time.Minute, 0)
		paused.Store(true)
		later("our own pause", 3*time.Second, 3)
		stop()
		w.heard.Add(1)
		later("it is over", time.Minute, 0)
	})
}

// What a stall is judged by: the deltas of a call that waits behind others.
func TestRun_Waiting_BehindOthers(t *testing.T) {
	f := newFake(t)
	c := startSigning(t, Options{}, time.Millisecond)
	payload, err := request("queued", f.URL+"/v1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	var progress zmqio.Progress
	var reply zmqio.Reply
	done := make(chan struct{})
	go func() {
		defer close(done)
		reply, err = c.Call(t.Context(), "run", payload, &progress)
	}()
	hosttest.Await(t, "model call", f.entered)
	const told = 2 // deltas of every run before its answer
	for end := time.Now().Add(hosttest.Patience); progress.Deltas() < told+3; {
		if time.Now().After(end) {
			t.Fatalf("got %d deltas, want signs of waiting", progress.Deltas())
		}
		episode(t, c, request("ok", f.URL+"/v1"))
	}
	close(f.turn)
	hosttest.Await(t, "the answer", done)
	if err != nil {
		t.Fatal(err)
	}
	result, err := wire.DecodeRun(reply.Deltas, reply.Payload, reply.Legacy)
	if err != nil || !result.Success || !result.Episode.OK || result.Episode.Selected().Completion() != "w1" {
		t.Errorf("got %+v, %v, want an episode that says nothing of its signs", result, err)
	}
}
