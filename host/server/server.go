package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	monitor  *monitor
	verdicts chan verdict   // our own decision to end it; the first one counts
	helpers  sync.WaitGroup // what watches the living generation
	answered atomic.Bool    // a run has brought something
	warming  atomic.Bool    // health is answered, and a worker's answer is waited for
	stopping atomic.Bool
	stopOnce sync.Once
	gone     chan struct{} // everything of the generation is cleaned up
}

// Start starts the env-server and returns when it is ready. ctx bounds starting only.
//
// # Errors
//
// *StartError when the process cannot be started, *NotReadyError when it ends or stays silent,
// ctx's cause when ctx ends.
func Start(ctx context.Context, spec Spec) (*Server, error) {
	s := &Server{
		spec: spec.withDefaults(), barrier: newBarrier(), verdicts: make(chan verdict, 1),
		gone: make(chan struct{}), started: time.Now(),
	}
	s.monitor = &monitor{Server: s, workers: map[processID]*worker{}}
	err := s.spec.check()
	switch {
	case err != nil:
	case s.spec.Address != "":
		s.endpoint = s.spec.Address
		err = s.attach(ctx)
	default:
		err = s.spawn(ctx)
	}
	if err != nil {
		s.cleanup()
		if ctx.Err() == nil {
			s.emit(EventNotReady, err)
		}
		return nil, err
	}
	s.spec.Logger.InfoContext(ctx, "env-server ready", s.who(), slog.Int("pid", s.PID()), slog.Duration("dur", time.Since(s.started)))
	s.emit(EventReady, nil)
	go s.watch() //nolint:contextcheck // the life is not bounded by the start's ctx
	return s, nil
}

// attach dials a server that somebody else runs.
func (s *Server) attach(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.spec.StartTimeout, errStartTimeout)
	defer cancel()
	d := &dialer{server: s}
	err := d.probe(ctx)
	s.client = d.take(err == nil)
	if err == nil {
		err = s.warm(ctx)
	}
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errStartTimeout) {
		return cause
	}
	return &NotReadyError{After: time.Since(s.started), LastProbe: err, Warming: s.warming.Load()}
}

var errStartTimeout = errors.New("start_timeout passed")

// spawn starts the child and waits until it answers.
func (s *Server) spawn(ctx context.Context) error {
	var err error
	if s.dir, err = newGenerationDir(); err != nil {
		return &StartError{Cause: err}
	}
	var release func()
	if s.endpoint, release, err = s.chooseEndpoint(); err != nil {
		return &StartError{Cause: err}
	}
	defer release()
	if s.logs, err = openLog(s.spec.LogPath); err != nil {
		return &StartError{Cause: err}
	}
	argv := make([]string, len(s.spec.Argv))
	for i, a := range s.spec.Argv {
		argv[i] = strings.ReplaceAll(a, "{address}", s.endpoint)
	}
	d := &dialer{server: s}
	s.proc, err = procwatch.Start(ctx, procwatch.Spec{
		Argv: argv, Dir: s.spec.Dir, TempDir: s.dir.path,
		Env:   slices.Concat(s.spec.Env, []string{"TMPDIR=" + s.dir.path}), // shared by instances: never appended to in place
		Grace: s.spec.StopGrace, Sink: s.logs.write,
		Prober: d.probe, ReadyTimeout: s.spec.StartTimeout,
		Containment: procwatch.Containment(s.spec.Containment), Logger: s.spec.Logger,
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return &StartError{Cause: err}
	}
	err = s.proc.Ready(ctx)
	s.client = d.take(err == nil)
	if err == nil {
		timeout := s.spec.StartTimeout - time.Since(s.started)
		wctx, cancel := context.WithTimeoutCause(ctx, timeout, errStartTimeout)
		err = s.warm(wctx)
		cancel()
	}
	if err != nil {
		return s.neverReady(ctx, err)
	}
	return nil
}

// neverReady stops what there is and says why it was not ready.
func (s *Server) neverReady(ctx context.Context, err error) error {
	if errors.As(err, new(*zmqio.ConnError)) {
		within(s.spec.Settle, s.proc.Exiting()) // EOF usually precedes the exit
	}
	exit, _ := s.proc.Stop(context.WithoutCancel(ctx), "not ready")
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	nr := &NotReadyError{
		After: time.Since(s.started), Warming: s.warming.Load(), LogPath: s.spec.LogPath, Tail: lines(exit.Tail),
	}
	var ready *procwatch.ReadyError
	switch {
	case exit.Cause == procwatch.CauseSelf:
		nr.Exited = s.exitedError(exit, 0, true)
	case errors.As(err, &ready):
		nr.LastProbe = ready.LastProbe
	default:
		nr.LastProbe = err
	}
	return nr
}

// chooseEndpoint says where the server shall listen. What it reserves is to be released when it does.
func (s *Server) chooseEndpoint() (endpoint string, release func(), err error) {
	if s.spec.Transport != "tcp" {
		return "ipc://" + s.dir.socket(), func() {}, nil
	}
	port, release, err := reservePort()
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("tcp://127.0.0.1:%d", port), release, nil
}

// Exited is closed when the generation has ended and its error is known, see [Server.Err].
func (s *Server) Exited() <-chan struct{} { return s.barrier.opened }

// Closing is closed when nothing new is accepted any more: the generation has ended or is about to.
func (s *Server) Closing() <-chan struct{} { return s.barrier.latched }

// Err is nil until Exited is closed; then *ExitedError, *ConnLostError, *WorkerLostError or
// *StalledError.
func (s *Server) Err() error {
	if !closed(s.barrier.opened) {
		return nil
	}
	return s.barrier.err
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

// who names the generation in the log.
func (s *Server) who() slog.Attr {
	return slog.Group("", slog.Int("instance", s.spec.Instance), slog.Int("gen", s.spec.Generation))
}

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
		if _, err = s.proc.Stop(ctx, "wevalr stops it"); err != nil { // unkillable: nobody waits for it
			s.condemn(verdict{err: s.connLostError(err)})
		}
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
