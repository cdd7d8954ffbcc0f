package zmqio

import "sync"

// outbound is what waits to be written on one connection of a server, bounded in bytes. Room is
// reserved first and may be waited for; to put what has room never waits.
type outbound struct {
	max  int64
	wake chan struct{} // holds one when something was put

	mu    sync.Mutex
	queue []message
	bytes int64
	room  chan struct{} // closed when bytes became fewer; nil when nobody waits
}

// message is one answer, or a piece of it.
type message struct {
	id      string
	delta   bool
	payload []byte
}

// cost is what a message counts in the queue.
func (m message) cost() int64 { return int64(len(m.payload)) + deltaCost }

func newOutbound(limit int64) *outbound {
	return &outbound{max: limit, wake: make(chan struct{}, 1)}
}

// reserve takes n bytes, and waits for them until gone or done is closed. What is larger than the
// whole queue has room when the queue is empty.
func (o *outbound) reserve(n int64, gone, done <-chan struct{}) error {
	for {
		select {
		case <-gone:
			return ErrPeerGone
		default:
		}
		o.mu.Lock()
		if o.bytes == 0 || o.bytes+n <= o.max {
			o.bytes += n
			o.mu.Unlock()
			return nil
		}
		if o.room == nil {
			o.room = make(chan struct{})
		}
		room := o.room
		o.mu.Unlock()
		select {
		case <-room:
		case <-gone:
			return ErrPeerGone
		case <-done:
			return ErrCancelled
		}
	}
}

// force takes n bytes at once.
func (o *outbound) force(n int64) {
	o.mu.Lock()
	o.bytes += n
	o.mu.Unlock()
}

// release gives n bytes back.
func (o *outbound) release(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= n
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// put queues a message for which bytes were taken.
func (o *outbound) put(m message) {
	o.mu.Lock()
	o.queue = append(o.queue, m)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take swaps the queue for the batch that was written.
func (o *outbound) take(batch []message) []message {
	clear(batch)
	o.mu.Lock()
	defer o.mu.Unlock()
	full := o.queue
	o.queue = batch[:0]
	return full
}
