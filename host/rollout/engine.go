package rollout

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/server"
	"github.com/wevalr/wevalr/plugins/abi"
)

// Spec is what one attempt on a run has to do.
type Spec struct {
	Journal  *journal.Run
	Tasks    *journal.Tasks
	Rollouts int
	// Owed picks what to run; nil: everything that is not finished.
	Owed func(journal.State) bool

	Servers Servers
	// Driver is the plugin that drives rollouts itself; nil: the host drives.
	Driver  *plugin.Plugin
	Scorers []Scorer
	Request Request

	MaxConcurrent int // requests to env-servers in flight; default 128
	Retries       int // tries of a rollout beyond the first, for retryable failures
	FailFast      bool

	// Drain, when closed, ends admission.
	Drain <-chan struct{}
	// Mask hides secrets in text before it is written or scored; nil: nothing to hide.
	Mask     func([]byte) []byte
	Observer Observer
	Logger   *slog.Logger
}

// Servers is the set of env-servers that rollouts go to.
type Servers interface {
	// Bind picks the least loaded living one; release when the rollout is over.
	Bind() (srv *server.Server, release func())
	// Down is closed when one has ended that nobody stopped.
	Down() <-chan struct{}
}

// Observer is told what happens, from many goroutines. It must not block.
type Observer interface {
	Dispatched(key string, index int)
	Ended(key string, index int, outcome failure.Outcome, f *failure.Failure)
	Scored(scorer string, value *float64)
	Retried()
}

// Result is what an attempt leaves beside the journal.
type Result struct {
	// Stopped says why admission ended early, nil when everything owed was dispatched.
	Stopped error
}

// The reasons for which admission ends early, beside a server's death.
var (
	ErrDrained  = errors.New("drained: nothing new is dispatched")
	ErrFailFast = errors.New("fail_fast: a rollout ended in error")
)

// answered bounds rollouts that have their answer and are not yet durable, beyond MaxConcurrent.
const answered = 256

// Run runs the attempt to its end. It returns when nothing of it is left in flight.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if spec.MaxConcurrent <= 0 {
		spec.MaxConcurrent = 128
	}
	if spec.Logger == nil {
		spec.Logger = slog.New(slog.DiscardHandler)
	}
	if spec.Observer == nil {
		spec.Observer = silent{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e := &engine{
		Spec:   spec,
		cancel: cancel,
		slots:  semaphore.NewWeighted(int64(spec.MaxConcurrent)),
		room:   semaphore.NewWeighted(int64(spec.MaxConcurrent + answered)),
	}
	e.scoring = newScoring(e)
	e.scoring.start(ctx)
	admit, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.stopAdmission = stop
	go e.watchStops(admit, stop)

	e.admit(admit, ctx)
	e.inFlight.Wait()
	stopped := context.Cause(admit)
	e.scoring.finish(ctx)
	return Result{Stopped: stopped}, e.fatal()
}

// engine is one Run.
type engine struct {
	Spec
	slots, room   *semaphore.Weighted
	inFlight      sync.WaitGroup
	scoring       *scoring
	cancel        context.CancelCauseFunc // of everything in flight
	stopAdmission context.CancelCauseFunc
	broken        atomic.Pointer[error] // a disk that takes no records
}

// watchStops ends admission for the reasons that come from outside.
func (e *engine) watchStops(admit context.Context, stop context.CancelCauseFunc) {
	select {
	case <-e.Drain:
		stop(ErrDrained)
	case <-e.Servers.Down():
		stop(errServerDown)
	case <-admit.Done():
	}
}

var errServerDown = errors.New("an env-server has ended")

// admit dispatches what is owed, in the task set's order, as room allows.
func (e *engine) admit(admit, ctx context.Context) {
	for task := range e.Tasks.Len() {
		for index := range e.Rollouts {
			if admit.Err() != nil {
				return
			}
			state := e.Journal.State(task, index)
			if state.Outcome.Finished() {
				e.scoring.put(item{task: task, index: index, ref: state.Episode})
				continue
			}
			if e.Owed != nil && !e.Owed(state) {
				continue
			}
			if e.room.Acquire(admit, 1) != nil {
				return
			}
			if e.Driver == nil && e.slots.Acquire(admit, 1) != nil {
				e.room.Release(1)
				return
			}
			e.inFlight.Go(func() {
				defer e.room.Release(1)
				e.rollout(ctx, admit, task, index, state.Tries)
			})
		}
	}
}

// task reads a task of the set.
func (e *engine) task(ordinal int) (*abi.Task, error) {
	raw, _, err := e.Tasks.Task(ordinal)
	if err != nil {
		return nil, err
	}
	return DecodeTask(raw)
}

// fail ends the attempt: the disk takes no records.
func (e *engine) fail(err error) {
	e.broken.CompareAndSwap(nil, &err)
	e.stopAdmission(err)
	e.cancel(err)
}

func (e *engine) fatal() error {
	if p := e.broken.Load(); p != nil {
		return *p
	}
	return nil
}

type silent struct{}

func (silent) Dispatched(string, int)                               {}
func (silent) Ended(string, int, failure.Outcome, *failure.Failure) {}
func (silent) Scored(string, *float64)                              {}
func (silent) Retried()                                             {}
