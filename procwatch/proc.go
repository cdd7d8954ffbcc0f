package procwatch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Proc is one started child. Its methods are safe for concurrent use.
type Proc struct {
	spec        Spec
	pid         int
	containment Containment
	start       time.Time
	body        body
	out         *output
	notify      *os.File // of Spec.NotifyFD, else nil

	exiting  chan struct{} // the leader is dead
	done     chan struct{} // exit is final
	ready    chan struct{} // a probe succeeded, or there is none
	notReady chan struct{} // readyErr is set
	hurry    chan struct{} // the grace is over
	stuck    chan struct{} // stuckErr is set
	helpers  sync.WaitGroup

	readyErr error // after notReady
	stuckErr error // after stuck
	exit     Exit  // after done

	hurryOnce sync.Once
	mu        sync.Mutex
	cause     Cause // the first one; "" while it lives
	reason    string
	escalated bool
}

// Start executes spec's command. The child lives on when ctx ends; only Stop ends it.
//
// # Errors
//
// Every error is a [*StartError]: the system's errno with what explains it, a Spec that makes no
// sense, a containment level that cannot be had, or the cause of ctx.
func Start(ctx context.Context, spec Spec) (*Proc, error) {
	spec, err := spec.withDefaults()
	if err != nil {
		return nil, &StartError{Err: err}
	}
	path := spec.Argv[0]
	if !strings.Contains(path, "/") {
		if path, err = exec.LookPath(path); err != nil {
			return nil, &StartError{Path: spec.Argv[0], Err: errors.Unwrap(err)}
		}
	}
	if ctx.Err() != nil {
		return nil, &StartError{Path: path, Err: context.Cause(ctx)}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, execError(path, spec.Dir, err)
	}
	defer null.Close()
	out, writers, err := newOutput(spec)
	if err != nil {
		return nil, execError(path, spec.Dir, err)
	}
	defer func() { closeAll(writers) }()
	p := &Proc{
		spec: spec, out: out,
		exiting: make(chan struct{}), done: make(chan struct{}),
		ready: make(chan struct{}), notReady: make(chan struct{}),
		hurry: make(chan struct{}), stuck: make(chan struct{}),
	}
	if spec.NotifyFD > 0 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(out.readers)
			return nil, execError(path, spec.Dir, err)
		}
		p.notify, writers = r, append(writers, w)
	}
	c := command{
		Path: path, Argv: spec.Argv, Dir: spec.Dir, Env: spec.Env,
		Grace: spec.Grace, TempDir: spec.TempDir, NotifyFD: spec.NotifyFD,
	}
	if err := p.launch(ctx, c, append([]*os.File{null}, writers...)); err != nil {
		closeAll(out.readers)
		_ = p.notify.Close() // nil has nothing to close
		return nil, execError(path, spec.Dir, err)
	}
	spec.Logger.InfoContext(ctx, "child started", slog.Int("pid", p.pid), slog.String("containment", string(p.containment)))
	if err := checkPidfd(); err != nil {
		spec.Logger.WarnContext(ctx, "processes are signalled by number, which may be another's by then", slog.Int("pid", p.pid), slog.Any("err", err))
	}
	out.start()
	go p.run() //nolint:contextcheck // ctx bounds the start, not the life
	return p, nil
}

// launch starts the body at the level asked for, or at the best that there is.
func (p *Proc) launch(ctx context.Context, c command, stdio []*os.File) error {
	levels := []Containment{p.spec.Containment}
	if p.spec.Containment == Auto {
		levels = []Containment{Cgroup, Warden, Group}
	}
	var without []error
	for _, level := range levels {
		p.start, p.containment = time.Now(), level
		var err error
		if level == Group {
			p.body, p.pid, err = startGroup(c, stdio)
		} else {
			p.body, p.pid, err = startWarden(ctx, level, c, stdio)
		}
		if err != nil && len(levels) > 1 && errors.As(err, new(*levelError)) {
			without = append(without, err)
			continue
		}
		if err == nil && level == Group && len(without) > 0 {
			p.spec.Logger.WarnContext(ctx, "the child's tree is held as a group only", slog.Any("err", errors.Join(without...)))
		}
		return err
	}
	return errors.Join(without...) // Group is always to be had
}

// run owns the child from its start to its end.
func (p *Proc) run() {
	life, end := context.WithCancel(context.Background())
	defer end()
	p.helpers.Go(func() { p.becomeReady(life) })
	if p.spec.DescendantExited != nil {
		p.helpers.Go(func() { p.watchDescendants(life) })
	}
	if p.spec.Liveness.Probe != nil {
		p.helpers.Go(func() { p.stayAlive(life) })
	}
	held := p.body.await()
	e := Exit{Start: p.start, End: time.Now()}
	e.Uptime = e.End.Sub(e.Start)
	p.mu.Lock()
	switch {
	case p.cause != "":
	case held:
		p.cause = CauseSelf
	default:
		p.cause = CauseContainmentLost
	}
	p.mu.Unlock()
	close(p.exiting)
	end()

	timeout := time.NewTimer(p.spec.DrainTimeout)
	defer timeout.Stop()
	d := p.body.bury()
	if !d.known {
		d.status = syscall.WaitStatus(syscall.SIGKILL)
	}
	e.setStatus(d.status)
	e.Usage, e.Survivors = d.usage, d.survivors
	e.PipeHolders, e.Dropped = p.out.drain(timeout.C)
	e.Tail = p.out.snapshot()
	p.helpers.Wait()
	if p.spec.TempDir != "" {
		if err := os.RemoveAll(p.spec.TempDir); err != nil {
			p.spec.Logger.Warn("the child's temp dir is not removed", slog.Any("err", err))
		}
	}
	p.mu.Lock()
	if !d.known && p.cause == CauseSelf {
		p.cause = CauseContainmentLost
	}
	e.Cause, e.Reason, e.Escalated = p.cause, p.reason, p.escalated
	e.Requested = p.cause == CauseStopped
	p.mu.Unlock()
	p.exit = e
	p.spec.Logger.Info("child exited", slog.Int("pid", p.pid), slog.Int("code", e.Code), slog.Int("signal", int(e.Signal)),
		slog.String("cause", string(e.Cause)), slog.Duration("dur", e.Uptime))
	close(p.done)
}

// Exiting closes as soon as the leader is dead, whatever its pipes, the sink or a prober do.
func (p *Proc) Exiting() <-chan struct{} { return p.exiting }

// Done closes when the Exit is final: survivors killed, leader reaped, output read to its end.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Exit returns how the child ended; false before Done.
func (p *Proc) Exit() (Exit, bool) {
	select {
	case <-p.done:
		return p.exit, true
	default:
		return Exit{}, false
	}
}

// Tail returns the last lines of both streams, oldest first.
func (p *Proc) Tail() []Line { return p.out.snapshot() }

// PID is the leader's number, for display: after Done it may belong to another process.
func (p *Proc) PID() int { return p.pid }

// Containment is the level that the child has: never Auto.
func (p *Proc) Containment() Containment { return p.containment }
