package zmqio

import (
	"fmt"
	"log/slog"
)

// read is the reader: it hands out answers until the connection ends, and never waits for anybody.
func (c *Client) read() {
	defer close(c.done)
	for {
		frames, skipped, err := c.g.recv()
		if err != nil {
			c.Fail(fmt.Errorf("read: %w", err))
			return
		}
		if err := c.answer(frames, skipped); err != nil {
			c.Fail(err)
			return
		}
	}
}

// answer takes one message: a delta or a reply. skipped counts the bytes of its payload that were
// too many to be kept.
func (c *Client) answer(frames [][]byte, skipped int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(frames)
	if n != 2 && n != 3 || c.dialect != 0 && n != c.dialect {
		return protocolf("answer of %d frames, first %q", n, clip(frames[0]))
	}
	id, payload := frames[0], frames[n-1]
	number, ok := c.issued(id)
	if !ok {
		return protocolf("answer to %q, which was never asked", clip(id))
	}
	delta := false
	if n == 3 {
		switch string(frames[1]) {
		case "delta":
			delta = true
		case "reply":
		default:
			return protocolf("answer of kind %q, want delta or reply", clip(frames[1]))
		}
	}
	c.dialect = n
	k := c.table[number]
	switch {
	case k != nil && k.state.Load() == queued:
		return protocolf("answer to %q before it was asked", id)
	case k == nil && !delta:
		c.lateCount++
		c.opt.Logger.Warn("second reply to a request", slog.Uint64("req", number))
	case k == nil:
		c.opt.Logger.Warn("delta after the reply of a request", slog.Uint64("req", number))
	case delta:
		c.delta(k, payload, skipped)
	default:
		c.reply(k, payload, skipped)
	}
	return nil
}

// delta keeps one piece of an answer. Needs mu.
func (c *Client) delta(k *call, payload []byte, skipped int64) {
	if k.ended || k.of != nil {
		return
	}
	size := int64(len(payload)) + deltaCost + skipped
	k.seen.add(len(payload), true)
	if total := k.bytes + size; total > c.opt.ReplyMax {
		c.giveUp(k, &TooLargeError{Bytes: total, Max: c.opt.ReplyMax})
		return
	}
	if k.first != nil && len(k.deltas) == 0 {
		k.first <- payload
	}
	k.deltas = append(k.deltas, payload)
	k.bytes += size
	c.held += size
	c.overBudget()
}

// reply ends an answer. Needs mu.
func (c *Client) reply(k *call, payload []byte, skipped int64) {
	c.received++
	c.forget(k)
	defer c.room()
	switch {
	case k.of != nil: // the server has dealt with the cancel: what comes now was aborted by it
		c.drained++
		k.of.cancelled = true
		return
	case k.ended:
		c.drained++
		c.lateCount++
		return
	case k.cancelled:
		c.drained++
		c.end(k, errAbandoned)
		return
	}
	k.seen.add(len(payload), false)
	size := int64(len(payload)) + skipped
	if total := k.bytes + size; total > c.opt.ReplyMax {
		c.end(k, &TooLargeError{Bytes: total, Max: c.opt.ReplyMax})
		return
	}
	k.reply, k.legacy = payload, c.dialect == 2
	k.bytes += size
	c.held += size
	c.end(k, nil)
	c.overBudget()
}

// clip bounds what a peer sent for a text.
func clip(b []byte) []byte { return b[:min(len(b), 64)] }
