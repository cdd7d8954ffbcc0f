package zmqio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/go-zeromq/zmq4"
)

// What a client may send besides its payload.
const (
	idMax     = 255
	methodMax = 64
	liveMax   = 1 << 16 // unanswered runs of one connection
)

// peer is one connection of a server.
type peer struct {
	server *Server
	zc     *zmq4.Conn
	g      *guard
	out    *outbound
	gone   <-chan struct{} // closed when the connection has ended
	runs   sync.WaitGroup
	live   chan struct{} // a place for each unanswered run
	held   atomic.Int64  // bytes of their payloads
}

// serve is the life of one connection, from the check of who it is to its last handler's return.
func (s *Server) serve(base context.Context, nc net.Conn) {
	ctx, log := base, s.opt.Logger
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	if uid, ok, err := peerUID(nc); err != nil || ok && !s.opt.AllowUID(uid) {
		log.WarnContext(ctx, "connection refused: of another user", slog.Int("uid", uid), slog.Any("err", err))
		_ = nc.Close()
		return
	}
	zc, g, err := open(nc, true, s.opt.limits())
	if err != nil {
		log.WarnContext(ctx, "connection refused", slog.Any("err", err))
		return
	}
	ctx, cancelCause := context.WithCancelCause(ctx)
	cancel := func() {
		if base.Err() != nil { // Close ended us, though the connection may have told first
			cancelCause(context.Cause(base))
		}
		cancelCause(ErrPeerGone)
	}
	unwatch := context.AfterFunc(ctx, func() { _ = nc.Close() }) // whoever ends first ends the others
	defer unwatch()
	p := &peer{
		server: s, zc: zc, g: g, out: newOutbound(s.opt.QueueBytes),
		gone: ctx.Done(), live: make(chan struct{}, liveMax),
	}
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		err := p.write()
		if errors.As(err, new(*StallError)) {
			log.WarnContext(ctx, "connection closed", slog.Any("err", err))
		}
		cancel()
	}()
	err = p.read(ctx)
	if !errors.Is(err, io.EOF) && ctx.Err() == nil {
		log.WarnContext(ctx, "connection closed", slog.Any("err", err))
	}
	cancel()
	_ = nc.Close()
	<-wrote
	p.runs.Wait()
}

// read takes requests until the connection ends.
func (p *peer) read(ctx context.Context) error {
	for {
		f, _, err := p.g.recv()
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		switch {
		case len(f) != 3:
			return protocolf("request of %d frames, first %q", len(f), clip(f[0]))
		case len(f[0]) > idMax || !utf8.Valid(f[0]):
			return protocolf("request with id %q", clip(f[0]))
		case len(f[1]) > methodMax:
			return protocolf("request with method %q", clip(f[1]))
		}
		req := &Request{ID: string(f[0]), Method: string(f[1]), Payload: f[2], peer: p}
		if req.Method != "run" {
			p.inline(ctx, req)
			continue
		}
		if err := p.start(ctx, req); err != nil {
			return err
		}
	}
}

// inline answers in the reader; a client that does not read its answers is not read either.
func (p *peer) inline(ctx context.Context, req *Request) {
	req.done = ctx.Done()
	req.finish(p.server.handler(ctx, req))
	_ = p.out.reserve(0, p.gone, nil) // a cancel's reply did not wait for room
}

// start gives a run its goroutine.
func (p *peer) start(ctx context.Context, req *Request) error {
	s := p.server
	select {
	case p.live <- struct{}{}:
	default:
		return &LimitError{What: "unanswered runs", Got: liveMax + 1, Max: liveMax}
	}
	size, limit := int64(len(req.Payload)), s.opt.HeldBytes
	if held := p.held.Add(size); held > limit {
		return &LimitError{What: "bytes of unanswered runs", Got: held, Max: limit}
	}
	runCtx, cancel := context.WithCancelCause(ctx)
	req.done, req.cancel = runCtx.Done(), cancel
	s.mu.Lock()
	old := s.runs[req.ID]
	twice := old != nil && !old.answered()
	if !twice {
		s.runs[req.ID] = req
	}
	s.mu.Unlock()
	if twice { // its answer could not be told from the first one's
		cancel(nil)
		return protocolf("run with the id %q of an unanswered one", req.ID)
	}
	p.runs.Go(func() {
		defer func() { <-p.live }()
		defer cancel(nil)
		p.work(runCtx, req, size)
		s.mu.Lock()
		if s.runs[req.ID] == req {
			delete(s.runs, req.ID)
		}
		s.mu.Unlock()
	})
	return nil
}

// work waits for a place and runs the handler. Without one, a cancelled run is answered all the same.
func (p *peer) work(ctx context.Context, req *Request, size int64) {
	places := p.server.places
	if places != nil {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-ctx.Done():
		}
	}
	reply := p.server.handler(ctx, req)
	p.held.Add(-size) // before the reply, after which the client may ask for as much again
	req.finish(reply)
}

// write sends what is queued, and flushes when nothing is. It returns nil when the connection ended.
func (p *peer) write() error {
	var batch []message
	var id []byte
	delta, reply := []byte("delta"), []byte("reply")
	frames := make([][]byte, 3)
	for {
		batch = p.out.take(batch)
		for _, m := range batch {
			select {
			case ping := <-p.g.pongs:
				if err := p.zc.SendCmd(zmq4.CmdPong, ping); err != nil {
					return err
				}
			default:
			}
			id = append(id[:0], m.id...)
			frames[0], frames[1], frames[2] = id, reply, m.payload
			if m.delta {
				frames[1] = delta
			}
			if err := p.zc.SendMsg(zmq4.NewMsgFrom(frames...)); err != nil {
				return err
			}
			frames[2] = nil
			p.out.release(m.cost())
		}
		if len(batch) > 0 {
			runtime.Gosched() // who is about to answer may still come into the same write
			continue
		}
		if err := p.g.bw.Flush(); err != nil {
			return err
		}
		select {
		case <-p.out.wake:
		case ping := <-p.g.pongs:
			if err := p.zc.SendCmd(zmq4.CmdPong, ping); err != nil {
				return err
			}
		case <-p.gone:
			return nil
		}
	}
}
