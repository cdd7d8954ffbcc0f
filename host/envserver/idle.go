package envserver

import (
	"io"
	"time"
)

// idleTimer fires when nothing was read for a while. The zero duration never fires.
type idleTimer struct {
	every time.Duration
	timer *time.Timer
}

func newIdleTimer(every time.Duration, fire func()) *idleTimer {
	t := &idleTimer{every: every}
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

// reader restarts the timer at every read that brought something.
func (t *idleTimer) reader(r io.Reader) io.Reader {
	if t.timer == nil {
		return r
	}
	return &idleReader{t: t, r: r}
}

type idleReader struct {
	t *idleTimer
	r io.Reader
}

func (r *idleReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.t.timer.Reset(r.t.every)
	}
	return n, err
}
