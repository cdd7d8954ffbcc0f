package envserver

import (
	"io"
	"sync/atomic"
	"time"
)

// idleTimer fires when nothing was heard for a while, and counts what was. The zero duration never
// fires.
type idleTimer struct {
	every time.Duration
	timer *time.Timer
	count *atomic.Int64
}

func newIdleTimer(every time.Duration, count *atomic.Int64, fire func()) *idleTimer {
	t := &idleTimer{every: every, count: count}
	if every > 0 {
		t.timer = time.AfterFunc(every, fire)
	}
	return t
}

func (t *idleTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

func (t *idleTimer) heard() {
	t.count.Add(1)
	if t.timer != nil {
		t.timer.Reset(t.every)
	}
}

// reader hears every read that brings something.
func (t *idleTimer) reader(r io.Reader) io.Reader { return &idleReader{t: t, r: r} }

type idleReader struct {
	t *idleTimer
	r io.Reader
}

func (r *idleReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.t.heard()
	}
	return n, err
}
