package server

import (
	"errors"
	"testing"
)

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestBarrier(t *testing.T) {
	b := newBarrier()
	if !b.enter() || !b.enter() {
		t.Fatal("refused before the latch")
	}
	b.leave(false)
	b.latch()
	b.latch()
	if b.enter() {
		t.Error("let in after the latch")
	}
	if closed(b.empty) {
		t.Error("empty with one inside")
	}
	if got := b.inFlight(); got != 1 {
		t.Errorf("got %d in flight, want the one inside", got)
	}
	b.leave(true)
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
