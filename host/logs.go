package host

import (
	"io"
	"sync"
)

// lateWriter holds what is logged until the run directory is there.
type lateWriter struct {
	mu   sync.Mutex
	w    io.Writer
	held []byte
}

func (l *lateWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		l.held = append(l.held, p...)
		return len(p), nil
	}
	return l.w.Write(p)
}

func (l *lateWriter) open(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w = w
	_, _ = w.Write(l.held)
	l.held = nil
}
