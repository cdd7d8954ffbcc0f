package envserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// rollout asks the model once and streams the trace as it grows: what it starts from, what is being
// asked, what was answered, how it ended. The reply says which trace makes the episode.
func (h *handler) rollout(ctx context.Context, req *zmqio.Request, t *task, c *call, m model) ([]byte, error) {
	s, err := newStory(h, t, c)
	if err != nil {
		return nil, err
	}
	if err := s.open(req); err != nil {
		return nil, err
	}
	if err := s.ask(req); err != nil {
		return nil, err
	}
	c.sign = func() { s.wait(req) }
	s.call.Time.Start = unixNow()
	done, tries, err := m.complete(ctx, c)
	s.call.Time.End = unixNow()
	s.call.Extra = wire.Extra{{Name: "tries", Value: value(int64(tries))}} // wevalr's own field
	var failed *callError
	switch {
	case errors.As(err, &failed):
		err = s.fail(req, failed)
	case err == nil:
		err = s.finish(req, &done)
	}
	if err != nil {
		return nil, err
	}
	return s.reply()
}

// newID is a UUID of version 4 as 32 hexadecimal digits, as Python's uuid4().hex.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return hex.EncodeToString(b[:])
}

func unixNow() float64 { return float64(time.Now().UnixMicro()) / 1e6 }
