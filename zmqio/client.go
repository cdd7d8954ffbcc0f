package zmqio

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"
)

// Client is one connection to a server. It is made by [Dial], used by any number of goroutines, and
// must be closed.
type Client struct {
	opt    Options
	nc     net.Conn
	zc     *zmq4.Conn
	g      *guard
	prefix [16]byte
	wake   chan struct{} // holds one when the writer has something to do
	dead   chan struct{} // closed when the connection has ended
	done   chan struct{} // closed when the reader has ended
	wrote  chan struct{} // closed when the writer has ended
	sent   atomic.Int64

	mu        sync.Mutex
	table     map[uint64]*call // of which an answer is due, or that are queued
	last      uint64           // the newest id
	queue     []*call
	held      int64 // bytes of answers of calls that have not returned
	waiting   []*waiter
	refused   error // why nothing is admitted any more
	err       *ConnError
	noWriter  bool
	dialect   int // frames of an answer: 2 or 3, 0 while unknown
	received  int64
	cancels   int64
	drained   int64
	lateCount int64
}

// Stats are counters of a [Client].
type Stats struct {
	// Pending calls wait to be sent or for their answer, cancelled ones included.
	Pending int64
	// Draining are answers still due to calls that have ended, and to cancels.
	Draining int64
	// Sent requests and Received replies, cancels included.
	Sent, Received int64
	// Cancels that were queued for the wire.
	Cancels int64
	// Drained are replies to cancels and to calls that had been cancelled or given up.
	Drained int64
	// Late are those of them (and second replies) that came after their call had ended.
	Late int64
}

// Dial connects to "ipc://path" or "tcp://host:port". It tries again, every [Options.DialRetry],
// until ctx ends: the server may still be starting. Later ends of ctx do not touch the Client.
//
// # Errors
//
// A [*ProtocolError] at once when the peer is no ROUTER with ZMTP 3 and mechanism NULL. A bad
// endpoint at once. Else the cause of ctx, joined with the last attempt's error.
func Dial(ctx context.Context, endpoint string, opt Options) (*Client, error) {
	opt = opt.withDefaults()
	network, addr, err := split(endpoint)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for last := error(nil); ; {
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); last != nil {
				return nil, fmt.Errorf("zmqio: dial: %s: %w (last attempt: %w)", endpoint, cause, last)
			}
			return nil, fmt.Errorf("zmqio: dial: %s: %w", endpoint, context.Cause(ctx))
		case <-timer.C:
		}
		c, err := dialOnce(ctx, network, addr, opt)
		if err == nil {
			return c, nil
		}
		if errors.As(err, new(*ProtocolError)) {
			return nil, fmt.Errorf("zmqio: dial: %s: %w", endpoint, err)
		}
		if ctx.Err() == nil || last == nil { // what the end of ctx did to the attempt says nothing
			last = err
		}
		timer.Reset(opt.DialRetry)
	}
}

func dialOnce(ctx context.Context, network, addr string, opt Options) (*Client, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	zc, g, err := open(nc, false, opt.limits())
	if !stop() && err == nil {
		_ = nc.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return newClient(nc, zc, g, opt), nil
}

func newClient(nc net.Conn, zc *zmq4.Conn, g *guard, opt Options) *Client {
	c := &Client{
		opt: opt, nc: nc, zc: zc, g: g, table: map[uint64]*call{},
		wake: make(chan struct{}, 1), dead: make(chan struct{}),
		done: make(chan struct{}), wrote: make(chan struct{}),
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	hex.Encode(c.prefix[:], b[:])
	go c.read()
	go c.write()
	return c
}

// Call does one round trip and owns payload from then on. p, if not nil, counts while it runs. A
// reply that arrived wins over the end of ctx, over [Client.Refuse] and [Client.Fail]; so does one
// that the server sent before it saw the cancel, which its place before the cancel's own reply
// tells. On an error the Reply still holds the deltas that had arrived.
//
// # Errors
//
// [*ConnError], also when the connection ends while a cancelled call drains; [*TooLargeError]; the
// cause of ctx, after the server has answered run and cancel or [Options.CancelGrace] has passed.
func (c *Client) Call(ctx context.Context, method string, payload []byte, p *Progress) (Reply, error) {
	k, err := c.admit(ctx, newCall(method, payload, p))
	if err != nil {
		return Reply{}, err
	}
	defer c.release(k)
	c.await(ctx, k)
	if errors.Is(k.err, errAbandoned) {
		k.err = context.Cause(ctx)
	}
	return Reply{Deltas: k.deltas, Payload: k.reply, Legacy: k.legacy}, k.err
}

// await returns when the call has ended and its hook, if it has one, was called.
func (c *Client) await(ctx context.Context, k *call) {
	for open := true; open; {
		select {
		case b := <-k.first:
			k.seen.OnFirst(b)
			continue
		case <-k.done:
		case <-ctx.Done():
			c.abandon(k)
		}
		open = false
	}
	select {
	case b := <-k.first:
		k.seen.OnFirst(b)
	default:
	}
}

// release gives back what a call held. One that its own hook's panic has left is given up.
func (c *Client) release(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.ended {
		c.giveUp(k, nil)
	}
	c.held -= k.bytes
	c.room()
}

// Refuse latches a cause: calls from now on, and those that are still queued, end with a
// [*ConnError] that was not Sent. Those sent go on. The first cause stays.
func (c *Client) Refuse(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse(cause)
}

// refuse is Refuse with mu held.
func (c *Client) refuse(cause error) {
	if c.refused != nil {
		return
	}
	if cause == nil {
		cause = ErrClosed
	}
	c.refused = cause
	for _, k := range c.table {
		if k.of == nil && k.state.CompareAndSwap(queued, abandoned) {
			k.payload = nil
			c.forget(k)
			c.end(k, &ConnError{Cause: cause})
		}
	}
	c.room()
}

// Fail ends the connection: every call without its answer ends with a [*ConnError] of that cause.
// Only the first end of a connection counts.
func (c *Client) Fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if cause == nil {
		cause = ErrClosed
	}
	c.err = &ConnError{Cause: cause}
	c.refuse(cause) // what is still queued has not been sent
	for _, k := range c.table {
		c.forget(k)
		c.end(k, &ConnError{Cause: cause, Sent: true})
	}
	clear(c.queue)
	c.queue = nil
	close(c.dead)
	_ = c.nc.Close()
}

// Done is closed when nothing more will be read: the server closed the connection, it broke, a limit
// was passed, or [Client.Fail] or [Client.Close] ended it. No call is pending then.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err is why the connection ended, a [*ConnError]; nil while it lives.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return c.err
}

// Close ends the connection as [Client.Fail] with [ErrClosed] does, and waits for the Client's own
// goroutines. It may be called again; its error is always nil.
func (c *Client) Close() error {
	c.Fail(ErrClosed)
	<-c.done
	<-c.wrote
	return nil
}

// Stats returns the counters of now.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{Sent: c.sent.Load(), Received: c.received, Cancels: c.cancels, Drained: c.drained, Late: c.lateCount}
	for _, k := range c.table {
		if k.of != nil || k.ended {
			s.Draining++
		} else {
			s.Pending++
		}
	}
	return s
}
