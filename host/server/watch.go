package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/wevalr/wevalr/procwatch"
)

// errGone is the cause that calls see on the wire; what their callers see is the barrier's error.
var errGone = errors.New("the env-server is gone")

// verdict is our own decision to end a generation.
type verdict struct {
	err  error
	soft bool // nothing new is sent, and what is in flight may still end by itself
}

// condemn ends the generation, unless that is decided already.
func (s *Server) condemn(v verdict) {
	select {
	case s.verdicts <- v:
	default:
	}
}

// outcome is why the generation is over: exited, or one of the others.
type outcome struct {
	exited  bool
	lost    error // the connection ended and the process, if there is one, lived on for Settle
	verdict error
}

// watch owns the end of the generation: it waits for the exit, the connection's end or a verdict, runs
// the exit barrier and cleans up.
func (s *Server) watch() {
	defer close(s.gone)
	life, over := context.WithCancel(context.Background())
	s.watchLife(life)
	out := s.await()
	s.barrier.latch(nil)
	s.client.Refuse(errGone)

	// Replies that were already sent still win: read on until EOF.
	if out.exited {
		within(s.spec.DrainLimit, s.client.Done())
	}
	over()
	s.client.Fail(errGone)
	drained := within(s.spec.DrainLimit, s.barrier.empty)
	s.helpers.Wait()

	err := s.ended(out, drained)
	s.spec.Logger.Info("env-server ended", s.who(), slog.String("err", firstLine(err.Error())))
	s.cleanup()
	s.emit(EventExited, err)
	s.barrier.open(err)
}

// await returns when the generation is over.
func (s *Server) await() outcome {
	var exiting <-chan struct{} // never, for a server that somebody else runs
	if s.proc != nil {
		exiting = s.proc.Exiting()
	}
	select {
	case <-exiting:
		return outcome{exited: true}
	case v := <-s.verdicts:
		return s.sentence(v, exiting)
	case <-s.client.Done():
	}
	if s.proc == nil {
		return outcome{lost: s.client.Err()}
	}
	// EOF usually precedes the exit; nobody enters meanwhile.
	s.barrier.latch(nil)
	if s.stopping.Load() {
		select {
		case <-exiting:
			return outcome{exited: true}
		case v := <-s.verdicts:
			return outcome{verdict: v.err}
		}
	}
	if within(s.spec.Settle, exiting) {
		return outcome{exited: true}
	}
	return outcome{lost: s.client.Err()}
}

// sentence gives those in flight their chance, until a further verdict. What comes first stays the
// cause.
func (s *Server) sentence(v verdict, exiting <-chan struct{}) outcome {
	if v.soft {
		s.barrier.latch(v.err)
		s.client.Refuse(errGone)
		select {
		case <-s.barrier.empty:
		case <-s.verdicts:
		case <-exiting:
		case <-s.client.Done():
		}
	}
	return outcome{verdict: v.err}
}

// ended stops the child, if it is ours and lives, and makes the error.
func (s *Server) ended(out outcome, drained bool) error {
	if out.exited {
		<-s.proc.Done() // at most procwatch's DrainTimeout + 1 s after Exiting
		exit, _ := s.proc.Exit()
		s.logs.lost(exit.Dropped)
		return s.exitedError(exit, s.barrier.inFlight(), drained)
	}
	if out.verdict != nil {
		if s.proc != nil {
			_, _ = s.proc.Stop(context.Background(), firstLine(out.verdict.Error()))
		}
		return out.verdict
	}
	e := s.connLostError(out.lost)
	if s.proc == nil {
		return e
	}
	asked := time.Now()
	exit, err := s.proc.Stop(context.Background(), "its connection was lost")
	s.logs.lost(exit.Dropped)
	switch {
	case err != nil: // it cannot even be killed
	case exit.Cause == procwatch.CauseSelf: // it had ended before it was told to
		return s.exitedError(exit, e.InFlight, drained)
	default:
		e.Exit, e.StopTook = s.exitedError(exit, e.InFlight, drained), exit.End.Sub(asked)
		e.Tail = e.Exit.Tail
	}
	return e
}

func (s *Server) connLostError(cause error) *ConnLostError {
	return &ConnLostError{
		Life: s.life(), Address: s.spec.Address, Cause: cause, Uptime: time.Since(s.started), InFlight: s.barrier.inFlight(),
	}
}

func (s *Server) exitedError(x procwatch.Exit, inFlight int, drained bool) *ExitedError {
	e := &ExitedError{
		Life: s.life(), Ending: Ending{Code: x.Code}, CoreDumped: x.CoreDumped, Requested: x.Requested,
		Uptime: x.Uptime, InFlight: inFlight, Drained: drained,
	}
	if x.Signaled {
		e.Ending = Ending{Signal: x.Signal}
	}
	e.Tail = lines(x.Tail)
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
