package zmqio

import (
	"context"
	"slices"
)

// waiter is a call that waits for a place.
type waiter struct {
	k     *call
	ready chan error // cap 1: nil when k was admitted
}

// admit gives k its id, its place in the table and in the queue, first come first served.
func (c *Client) admit(ctx context.Context, k *call) (*call, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	if c.refused != nil {
		defer c.mu.Unlock()
		return nil, &ConnError{Cause: c.refused}
	}
	if len(c.waiting) == 0 && c.hasRoom() {
		c.enqueue(k)
		c.mu.Unlock()
		return k, nil
	}
	w := &waiter{k: k, ready: make(chan error, 1)}
	c.waiting = append(c.waiting, w)
	c.mu.Unlock()

	select {
	case err := <-w.ready:
		return k, err
	case <-ctx.Done():
	}
	c.mu.Lock()
	i := slices.Index(c.waiting, w)
	if i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	c.mu.Unlock()
	if i < 0 { // it was admitted or refused in the same instant; Call looks at ctx again
		return k, <-w.ready
	}
	return nil, context.Cause(ctx)
}

// hasRoom needs mu, as do the rest of this file's functions.
func (c *Client) hasRoom() bool {
	return len(c.table) < c.opt.MaxPending && c.held <= c.opt.Budget
}

// room admits who waits, or refuses them all.
func (c *Client) room() {
	n := 0
	for ; n < len(c.waiting) && (c.refused != nil || c.hasRoom()); n++ {
		w := c.waiting[n]
		if c.refused != nil {
			w.ready <- &ConnError{Cause: c.refused}
			continue
		}
		c.enqueue(w.k)
		w.ready <- nil
	}
	c.waiting = slices.Delete(c.waiting, 0, n)
}

// enqueue hands a call to the writer.
func (c *Client) enqueue(k *call) {
	c.last++
	k.n = c.last
	c.table[k.n] = k
	c.queue = append(c.queue, k)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// forget gives up a call's place.
func (c *Client) forget(k *call) { delete(c.table, k.n) }

// end lets a call return, once.
func (c *Client) end(k *call, err error) {
	if k.ended || k.of != nil {
		return
	}
	k.ended, k.err = true, err
	close(k.done)
}
