package procwatch

import (
	"log/slog"
	"sync"
)

// The sink's queue.
const (
	queueLines = 4096
	queueBytes = 4 << 20
)

// queue hands lines to a sink that may be slow or broken. put never blocks.
type queue struct {
	sink  func(Line)
	log   *slog.Logger
	ended chan struct{} // run has returned
	wake  chan struct{} // capacity 1

	panicked bool // said so; run's own

	mu      sync.Mutex
	lines   []Line
	bytes   int
	closed  bool
	dropped Dropped
}

func newQueue(sink func(Line), log *slog.Logger) *queue {
	return &queue{sink: sink, log: log, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
}

func (q *queue) put(l Line) {
	q.mu.Lock()
	for len(q.lines) >= queueLines || q.bytes+len(l.Text) > queueBytes && len(q.lines) > 0 {
		q.drop(1)
	}
	q.lines = append(q.lines, l)
	q.bytes += len(l.Text)
	q.mu.Unlock()
	q.signal()
}

// drop forgets the n oldest lines.
//
// +checklocks:q.mu
func (q *queue) drop(n int) {
	for i := range n {
		size := len(q.lines[i].Text)
		q.dropped.Lines++
		q.dropped.Bytes += int64(size)
		q.bytes -= size
		q.lines[i] = Line{}
	}
	q.lines = q.lines[n:]
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close lets run end once the queue is empty.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

// abandon drops what is queued and returns the final count.
func (q *queue) abandon() Dropped {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(len(q.lines))
	return q.dropped
}

func (q *queue) run() {
	defer close(q.ended)
	for {
		q.mu.Lock()
		if len(q.lines) > 0 {
			l := q.lines[0]
			q.lines[0] = Line{}
			q.lines = q.lines[1:]
			q.bytes -= len(l.Text)
			q.mu.Unlock()
			q.deliver(l)
			continue
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return
		}
		<-q.wake
	}
}

// deliver survives a panicking sink: the child's life does not depend on who listens.
func (q *queue) deliver(l Line) {
	defer func() {
		if r := recover(); r != nil && !q.panicked {
			q.panicked = true
			q.log.Error("output sink panicked", slog.Any("err", r))
		}
	}()
	q.sink(l)
}
