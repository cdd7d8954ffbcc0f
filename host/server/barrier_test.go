package server

import (
	"errors"
	"testing"
)

func TestBarrier(t *testing.T) {
	b := newBarrier()
	one, two := new(inflight), new(inflight)
	if !b.enter(one) || !b.enter(two) {
		t.Fatal("refused before the latch")
	}
	b.leave(one, false)
	b.latch(nil)
	b.latch(nil)
	if b.enter(new(inflight)) {
		t.Error("let in after the latch")
	}
	if closed(b.empty) {
		t.Error("empty with one inside")
	}
	if got := b.inFlight(); got != 1 {
		t.Errorf("got %d in flight, want the one inside", got)
	}
	b.leave(two, true)
	if !closed(b.empty) {
		t.Error("not empty when the last has left")
	}
	if got := b.inFlight(); got != 1 {
		t.Errorf("got %d in flight, want the one that lost its reply", got)
	}
	why := errors.New("why")
	b.open(why)
	if got := b.wait(); got != why {
		t.Errorf("got %v", got)
	}
}

// A pool that is not whole refuses at once, though others are still inside.
func TestBarrier_Early(t *testing.T) {
	b := newBarrier()
	b.enter(new(inflight))
	why := errors.New("why")
	b.latch(why)
	b.latch(nil)
	if got := b.wait(); got != why {
		t.Errorf("got %v", got)
	}
}
