package server

import (
	"context"
	"errors"
	"time"

	"github.com/wevalr/wevalr/procwatch"
)

// errGone is the cause that calls see on the wire; what their callers see is the barrier's error.
var errGone = errors.New("the env-server is gone")

// watch owns the end of the generation: it waits for the exit or the connection's end, runs the exit
// barrier and cleans up.
func (s *Server) watch() {
	defer close(s.gone)
	exited, lost := s.await()
	s.barrier.latch()
	s.client.Refuse(errGone)

	// Replies that were already sent still win: read on until EOF.
	if exited {
		within(s.spec.DrainLimit, s.client.Done())
	}
	s.client.Fail(errGone)
	drained := within(s.spec.DrainLimit, s.barrier.empty)

	var err error
	if exited {
		<-s.proc.Done() // at most procwatch's DrainTimeout + 1 s after Exiting
		exit, _ := s.proc.Exit()
		err = s.exitedError(exit, s.barrier.inFlight(), drained)
	} else {
		err = s.connLost(lost)
	}
	s.spec.Logger.Info("env-server ended", "gen", s.spec.Generation, "instance", s.spec.Instance, "err", firstLine(err.Error()))
	s.cleanup()
	s.barrier.open(err)
}

// await returns when the generation is over: exited, or (false, why) when the connection ended and
// the process, if there is one, lived on for Settle.
func (s *Server) await() (exited bool, lost error) {
	if s.proc == nil {
		<-s.client.Done()
		return false, s.client.Err()
	}
	select {
	case <-s.proc.Exiting():
		return true, nil
	case <-s.client.Done():
	}
	// EOF usually precedes the exit; nobody enters meanwhile.
	s.barrier.latch()
	if s.stopping.Load() {
		<-s.proc.Exiting()
		return true, nil
	}
	if within(s.spec.Settle, s.proc.Exiting()) {
		return true, nil
	}
	return false, s.client.Err()
}

// connLost stops the child, if it is ours, and makes the error.
func (s *Server) connLost(cause error) error {
	e := &ConnLostError{
		Attempt: s.spec.Attempt, Instance: s.spec.Instance, Generation: s.spec.Generation,
		Address: s.spec.Address, Cause: cause, Uptime: time.Since(s.started), InFlight: s.barrier.inFlight(),
		LogPath: s.spec.LogPath, LogRel: s.spec.LogRel,
	}
	if s.proc != nil {
		e.PID = s.proc.PID()
		exit, _ := s.proc.Stop(context.Background(), "its connection was lost")
		e.Tail = lines(exit.Tail)
	}
	return e
}

func (s *Server) exitedError(x procwatch.Exit, inFlight int, drained bool) *ExitedError {
	e := &ExitedError{
		Attempt: s.spec.Attempt, Instance: s.spec.Instance, Generation: s.spec.Generation,
		PID: s.proc.PID(), Code: x.Code, CoreDumped: x.CoreDumped, Requested: x.Requested,
		Uptime: x.Uptime, InFlight: inFlight, Drained: drained,
		LogPath: s.spec.LogPath, LogRel: s.spec.LogRel, Tail: lines(x.Tail),
	}
	if x.Signaled {
		e.Signal, e.Code = x.Signal, 0
	}
	return e
}

// within waits for ch, at most d, and tells whether it closed.
func within(d time.Duration, ch <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ch:
		return true
	case <-t.C:
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
}

func lines(tail []procwatch.Line) []string {
	out := make([]string, len(tail))
	for i, l := range tail {
		out[i] = string(l.Text)
	}
	return out
}
