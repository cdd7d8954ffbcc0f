package server

import (
	"context"
	"errors"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// Reply is what a run brought.
type Reply struct {
	// Episode is set when err is nil.
	Episode *wire.Episode
	// Partial holds what had arrived of a run that has no episode; best effort, never to be scored.
	Partial []wire.Trace
	// Raw is what came where it could not be decoded (a protocol failure): the reply's payload, then
	// its deltas, at most 8 MiB of them.
	Raw []byte
}

const rawMax = 8 << 20

// Run sends one rollout and waits for its episode. p, where given, is updated as deltas arrive.
//
// # Errors
//
// *ExitedError, *ConnLostError (after the barrier), *WorkerLostError, *StalledError, *PeerError,
// *wire.ProtocolError, *TooLargeError, or ctx's cause once the cancel is drained or our own Stop has
// ended the server. A reply that arrived wins over all of them.
func (s *Server) Run(ctx context.Context, req *wire.RunRequest, p *zmqio.Progress) (Reply, error) {
	payload, err := req.Encode()
	if err != nil {
		return Reply{}, err
	}
	if p == nil {
		p = new(zmqio.Progress)
	}
	wired, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &inflight{seen: p, cancel: cancel}
	if !s.barrier.enter(c) {
		return Reply{}, s.barrier.wait()
	}
	raw, err := s.client.Call(wired, "run", payload, p)
	if err == nil {
		s.answered.Store(true)
	}
	var lost *zmqio.ConnError
	connLost := errors.As(err, &lost)
	s.barrier.leave(c, connLost && lost.Sent)
	if err != nil {
		return Reply{Partial: wire.DecodePartial(raw.Deltas)}, s.runError(ctx, err, connLost)
	}
	res, err := wire.DecodeRun(raw.Deltas, raw.Payload, raw.Legacy)
	if err != nil {
		return Reply{Partial: wire.DecodePartial(raw.Deltas), Raw: rawOf(raw)}, err
	}
	if !res.Success {
		return Reply{Partial: wire.DecodePartial(raw.Deltas)}, &PeerError{Text: res.Error}
	}
	return Reply{Episode: res.Episode}, nil
}

func rawOf(r zmqio.Reply) []byte {
	var out []byte
	for _, b := range append([][]byte{r.Payload}, r.Deltas...) {
		out = append(out, b[:min(len(b), rawMax-len(out))]...)
	}
	return out
}

// runError is what the caller gets for an error of the wire.
func (s *Server) runError(ctx context.Context, err error, connLost bool) error {
	if connLost {
		err = s.barrier.wait()
		if ctx.Err() != nil && s.wanted(err) {
			return context.Cause(ctx) // cancelled and stopped, both by us
		}
		return err
	}
	if large, ok := errors.AsType[*zmqio.TooLargeError](err); ok {
		return &TooLargeError{Cause: large}
	}
	var stalled *StalledError
	if errors.As(err, &stalled) && stalled.Generation == s.spec.Generation && !s.heardSince(stalled) {
		s.condemn(verdict{err: stalled})
		return s.barrier.wait()
	}
	return err
}

// wanted tells whether an end of the generation was our own Stop.
func (s *Server) wanted(err error) bool {
	if exited, ok := errors.AsType[*ExitedError](err); ok {
		return exited.Requested
	}
	return s.stopping.Load() && errors.As(err, new(*ConnLostError))
}
