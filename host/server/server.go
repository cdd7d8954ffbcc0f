package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/procwatch"
	"github.com/wevalr/wevalr/zmqio"
)

// Server is one generation of an env-server. Make it with [Start].
type Server struct {
	spec     Spec
	endpoint string
	dir      *generationDir
	logs     *logFile
	proc     *procwatch.Proc // nil for a server that somebody else runs
	client   *zmqio.Client
	started  time.Time

	barrier  *barrier
	stopping atomic.Bool
	stopOnce sync.Once
	gone     chan struct{} // everything of the generation is cleaned up
}

// Reply is what a run brought.
type Reply struct {
	// Episode is set when err is nil.
	Episode *wire.Episode
	// Partial holds what had arrived of a run that has no episode; best effort, never to be scored.
	Partial []wire.Trace
	// Raw is the reply's payload where it could not be decoded (a protocol failure).
	Raw []byte
}

// Start starts the env-server and returns when it is ready. ctx bounds starting only.
//
// # Errors
//
// *StartError when the process cannot be started, *NotReadyError when it ends or stays silent,
// ctx's cause when ctx ends.
func Start(ctx context.Context, spec Spec) (*Server, error) {
	s := &Server{spec: spec.withDefaults(), barrier: newBarrier(), gone: make(chan struct{}), started: time.Now()}
	var err error
	if s.spec.Address != "" {
		s.endpoint = s.spec.Address
		err = s.attach(ctx)
	} else {
		err = s.spawn(ctx)
	}
	if err != nil {
		s.cleanup()
		return nil, err
	}
	go s.watch()
	return s, nil
}

// attach dials a server that somebody else runs.
func (s *Server) attach(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.spec.StartTimeout, errStartTimeout)
	defer cancel()
	if err := s.probe(ctx); err != nil {
		if s.client != nil {
			_ = s.client.Close()
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errStartTimeout) {
			return cause
		}
		return &NotReadyError{After: time.Since(s.started), LastProbe: err}
	}
	return nil
}

var errStartTimeout = errors.New("start_timeout passed")

// spawn starts the child and waits until it answers.
func (s *Server) spawn(ctx context.Context) error {
	var err error
	if s.dir, err = newGenerationDir(); err != nil {
		return &StartError{Cause: err}
	}
	if s.endpoint, err = s.chooseEndpoint(ctx); err != nil {
		return &StartError{Cause: err}
	}
	if s.logs, err = openLog(s.spec.LogPath); err != nil {
		return &StartError{Cause: err}
	}
	argv := make([]string, len(s.spec.Argv))
	for i, a := range s.spec.Argv {
		argv[i] = strings.ReplaceAll(a, "{address}", s.endpoint)
	}
	s.proc, err = procwatch.Start(ctx, procwatch.Spec{
		Argv: argv, Dir: s.spec.Dir, Env: slices.Concat(s.spec.Env, []string{"TMPDIR=" + s.dir.path}), // shared by instances: never appended to in place
		TempDir: s.dir.path, Grace: s.spec.StopGrace, Sink: s.logs.write,
		Prober: s.probe, ReadyTimeout: s.spec.StartTimeout,
		Containment: procwatch.Containment(s.spec.Containment), Logger: s.spec.Logger,
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return &StartError{Cause: err}
	}
	if err := s.proc.Ready(ctx); err != nil {
		return s.neverReady(ctx, err)
	}
	s.spec.Logger.Info("env-server ready", "pid", s.proc.PID(), "gen", s.spec.Generation, "instance", s.spec.Instance, "dur", time.Since(s.started))
	return nil
}

// neverReady stops what there is and says why it was not ready.
func (s *Server) neverReady(ctx context.Context, err error) error {
	exit, _ := s.proc.Stop(context.WithoutCancel(ctx), "not ready")
	if s.client != nil {
		_ = s.client.Close()
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	nr := &NotReadyError{After: time.Since(s.started), LogPath: s.spec.LogPath, Tail: lines(exit.Tail)}
	var self *procwatch.ExitError
	var ready *procwatch.ReadyError
	switch {
	case errors.As(err, &self):
		nr.Exited = s.exitedError(self.Exit, 0, true)
		nr.Tail = nr.Exited.Tail
	case errors.As(err, &ready):
		nr.LastProbe = ready.LastProbe
	default:
		nr.LastProbe = err
	}
	return nr
}

// probe dials, once, and asks for health.
func (s *Server) probe(ctx context.Context) error {
	if s.client == nil {
		c, err := zmqio.Dial(ctx, s.endpoint, zmqio.Options{
			ReplyMax: s.spec.ReplyMax, Budget: s.spec.Budget, CancelGrace: s.spec.CancelGrace,
			CancelPayload: wire.EncodeCancel, Logger: s.spec.Logger,
		})
		if err != nil {
			return err
		}
		s.client = c
	}
	reply, err := s.client.Call(ctx, "health", wire.EncodeHealth(), nil)
	if err != nil {
		return err
	}
	return wire.DecodeHealth(reply.Payload)
}

func (s *Server) chooseEndpoint(ctx context.Context) (string, error) {
	if s.spec.Transport != "tcp" {
		return "ipc://" + s.dir.socket(), nil
	}
	// The port is free now and nobody promised it: a server that finds it taken says so and exits.
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("a loopback port: %w", err)
	}
	defer l.Close() //nolint:errcheck // nothing was sent on it
	return "tcp://" + l.Addr().String(), nil
}

// Run sends one rollout and waits for its episode. p, where given, is updated as deltas arrive.
//
// # Errors
//
// *ExitedError, *ConnLostError (after the barrier), *PeerError, *wire.ProtocolError, *TooLargeError, or ctx's cause once the cancel is drained. A reply that arrived wins over
// all of them.
func (s *Server) Run(ctx context.Context, req *wire.RunRequest, p *zmqio.Progress) (Reply, error) {
	payload, err := req.Encode()
	if err != nil {
		return Reply{}, err
	}
	if !s.barrier.enter() {
		return Reply{}, s.barrier.wait()
	}
	raw, err := s.client.Call(ctx, "run", payload, p)
	var lost *zmqio.ConnError
	connLost := errors.As(err, &lost)
	s.barrier.leave(connLost && lost.Sent)
	if err != nil {
		reply := Reply{Partial: wire.DecodePartial(raw.Deltas)}
		if connLost {
			return reply, s.barrier.wait()
		}
		var large *zmqio.TooLargeError
		if errors.As(err, &large) {
			err = &TooLargeError{Cause: large}
		}
		return reply, err
	}
	res, err := wire.DecodeRun(raw.Deltas, raw.Payload, raw.Legacy)
	if err != nil {
		return Reply{Partial: wire.DecodePartial(raw.Deltas), Raw: raw.Payload}, err
	}
	if !res.Success {
		return Reply{Partial: wire.DecodePartial(raw.Deltas)}, &PeerError{Text: res.Error}
	}
	return Reply{Episode: res.Episode}, nil
}

// Exited is closed when the generation has ended and its error is known, see [Server.Err].
func (s *Server) Exited() <-chan struct{} { return s.barrier.opened }

// Err is nil until Exited is closed; then *ExitedError or *ConnLostError.
func (s *Server) Err() error {
	select {
	case <-s.barrier.opened:
		return s.barrier.err
	default:
		return nil
	}
}

// PID is the leader's process id, 0 for a server that somebody else runs. For display only.
func (s *Server) PID() int {
	if s.proc == nil {
		return 0
	}
	return s.proc.PID()
}

// Started is when the process was started.
func (s *Server) Started() time.Time { return s.started }

// Generation and Instance name this life of this server; both count from 1.
func (s *Server) Generation() int { return s.spec.Generation }

// Instance is the server's place in its set.
func (s *Server) Instance() int { return s.spec.Instance }

// Log is where its output goes, relative to the run directory.
func (s *Server) Log() string { return s.spec.LogRel }

// Containment is the level that procwatch chose: what is promised when wevalr itself is killed.
func (s *Server) Containment() string {
	if s.proc == nil {
		return "none"
	}
	return string(s.proc.Containment())
}

// Stop ends the generation: TERM, StopGrace, KILL, for the whole tree; a server that somebody else
// runs is only disconnected. It returns when nothing of the generation is left. Calls in flight end
// as with any exit. A second Stop waits for the first.
func (s *Server) Stop(ctx context.Context) error {
	var err error
	s.stopOnce.Do(func() {
		s.stopping.Store(true)
		if s.proc == nil {
			err = s.client.Close()
			return
		}
		_, err = s.proc.Stop(ctx, "wevalr stops it")
	})
	<-s.gone
	return err
}

// cleanup frees what the generation holds on this machine.
func (s *Server) cleanup() {
	if s.client != nil {
		_ = s.client.Close()
	}
	if s.logs != nil {
		s.logs.close()
	}
	if s.dir != nil {
		s.dir.remove()
	}
}
