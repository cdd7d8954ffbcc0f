package zmqio

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"time"
)

// errAbandoned stands for the cause of a context that only [Client.Call] knows.
var errAbandoned = errors.New("abandoned")

// abandon is what the end of its context does to a call. When it returns, the call has ended.
func (c *Client) abandon(k *call) {
	c.mu.Lock()
	switch {
	case k.ended: // a reply, or the connection's end, was faster
	case k.state.CompareAndSwap(queued, abandoned):
		k.payload = nil
		c.forget(k)
		c.end(k, errAbandoned)
		c.room()
	case !c.sendCancel(k):
		c.end(k, errAbandoned)
	}
	ended := k.ended
	c.mu.Unlock()
	if ended {
		return
	}
	grace := time.NewTimer(c.opt.CancelGrace)
	defer grace.Stop()
	select {
	case <-k.done:
		return
	case <-grace.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.ended {
		c.opt.Logger.Warn("cancelled request not answered", slog.Uint64("req", k.n), slog.Duration("dur", c.opt.CancelGrace))
		c.end(k, errAbandoned)
	}
}

// sendCancel queues the cancel of a call that was sent. It needs no place of its own. Needs mu.
func (c *Client) sendCancel(k *call) bool {
	if c.opt.CancelPayload == nil || c.noWriter || c.err != nil {
		return false
	}
	c.cancels++
	c.enqueue(&call{method: "cancel", payload: c.opt.CancelPayload(string(c.id(nil, k.n))), of: k})
	return true
}

// giveUp ends a call that was sent and cancels it, without waiting. Needs mu.
func (c *Client) giveUp(k *call, err error) {
	c.sendCancel(k)
	c.end(k, err)
}

// overBudget gives up the newest calls that hold bytes until the rest fits. Their deltas are let go.
// A whole answer that only waits for its call to return is not touched. Needs mu.
func (c *Client) overBudget() {
	if c.held <= c.opt.Budget {
		return
	}
	var holders []*call
	for _, k := range c.table {
		if !k.ended && k.bytes > 0 {
			holders = append(holders, k)
		}
	}
	slices.SortFunc(holders, func(a, b *call) int { return cmp.Compare(b.n, a.n) })
	for _, k := range holders {
		if c.held <= c.opt.Budget {
			return
		}
		c.opt.Logger.Warn("request given up over the budget of answers", slog.Uint64("req", k.n))
		err := &TooLargeError{Bytes: c.held, Max: c.opt.Budget, Budget: true}
		c.held -= k.bytes
		k.deltas, k.bytes = nil, 0
		c.giveUp(k, err)
	}
}
