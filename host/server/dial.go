package server

import (
	"context"
	"sync"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// dialer connects once and asks for health, as procwatch's prober: it may still be at work when the
// start is over.
type dialer struct {
	server *Server

	mu     sync.Mutex
	client *zmqio.Client
	over   bool
}

// probe dials, once, and asks for health.
func (d *dialer) probe(ctx context.Context) error {
	c, err := d.dial(ctx)
	if err != nil {
		return err
	}
	reply, err := c.Call(ctx, "health", wire.EncodeHealth(), nil)
	if err != nil {
		return err
	}
	return wire.DecodeHealth(reply.Payload)
}

func (d *dialer) dial(ctx context.Context) (*zmqio.Client, error) {
	d.mu.Lock()
	c := d.client
	d.mu.Unlock()
	if c != nil {
		return c, nil
	}
	spec := d.server.spec
	c, err := zmqio.Dial(ctx, d.server.endpoint, zmqio.Options{
		ReplyMax: spec.ReplyMax, Budget: spec.Budget, CancelGrace: spec.CancelGrace,
		CancelPayload: wire.EncodeCancel, Logger: spec.Logger,
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	over := d.over
	if !over {
		d.client = c
	}
	d.mu.Unlock()
	if over {
		_ = c.Close()
		return nil, zmqio.ErrClosed
	}
	return c, nil
}

// take ends probing and hands out the connection; a start that failed closes it.
func (d *dialer) take(ready bool) *zmqio.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if !ready && d.client != nil {
		_ = d.client.Close()
	}
	return d.client
}
