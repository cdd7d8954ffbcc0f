package zmqio

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/go-zeromq/zmq4"
)

// write is the writer: it sends what is queued, and flushes when nothing is.
func (c *Client) write() {
	defer close(c.wrote)
	if err := c.send(); err != nil {
		c.writeError(err)
	}
}

// send returns nil when the connection has ended.
func (c *Client) send() error {
	var batch []*call
	var id, method []byte
	frames := make([][]byte, 3)
	for {
		batch = c.take(batch)
		for _, k := range batch {
			if err := c.pong(); err != nil {
				return err
			}
			if !k.state.CompareAndSwap(queued, sent) {
				continue
			}
			k.seen.markSent()
			c.sent.Add(1)
			id, method = c.id(id[:0], k.n), append(method[:0], k.method...)
			frames[0], frames[1], frames[2] = id, method, k.payload
			err := c.zc.SendMsg(zmq4.NewMsgFrom(frames...))
			k.payload, frames[2] = nil, nil
			if err != nil {
				return err
			}
		}
		if len(batch) > 0 {
			runtime.Gosched() // who is about to call may still come into the same write
			continue
		}
		if err := c.g.bw.Flush(); err != nil {
			return err
		}
		select {
		case <-c.wake:
		case ctx := <-c.g.pongs:
			if err := c.zc.SendCmd(zmq4.CmdPong, ctx); err != nil {
				return err
			}
		case <-c.dead:
			return nil
		}
	}
}

// take swaps the queue for the batch that was written.
func (c *Client) take(batch []*call) []*call {
	clear(batch)
	c.mu.Lock()
	defer c.mu.Unlock()
	full := c.queue
	c.queue = batch[:0]
	return full
}

// pong answers a PING that came in between.
func (c *Client) pong() error {
	select {
	case ctx := <-c.g.pongs:
		return c.zc.SendCmd(zmq4.CmdPong, ctx)
	default:
		return nil
	}
}

// writeError stops the writer only: a server that is dying may have answered already, and those
// answers are still to be read. Should the peer not end the connection by itself, it ends after
// WriteStall. A stall is the end at once, for a peer that takes nothing will not hang up either.
func (c *Client) writeError(err error) {
	if stall, ok := errors.AsType[*StallError](err); ok {
		c.Fail(stall)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noWriter = true
	clear(c.queue)
	c.queue = nil
	c.refuse(fmt.Errorf("write: %w", err))
	for _, k := range c.table {
		if k.of != nil && k.state.CompareAndSwap(queued, abandoned) {
			c.forget(k)
		}
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(c.opt.WriteStall))
}
