package rollout

import (
	"context"
	"errors"
	"fmt"
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
	// CheckEcho compares each rollout's task, as the env-server recorded it, with what was sent: see
	// [EchoError]. Until a trace has begun with the right task, or an episode come with it, one request is
	// sent at a time: a wrong server costs one rollout, a right one the time to its first delta.
	CheckEcho bool

	MaxConcurrent int // requests to env-servers in flight; default 128
	Retries       int // tries of a rollout beyond the first, for retryable failures
	// Replays is how many more tries a rollout gets that was in flight when its server ended, for
	// on_exit = "restart"; they are not charged to Retries. 0: none.
	Replays  int
	FailFast bool

	// Drain, when closed, ends admission.
	Drain <-chan struct{}
	// Mask hides secrets in one JSON text before it is written, scored or shown to a plugin, and does
	// not change its input; nil: nothing to hide.
	Mask func([]byte) []byte
	// MaskRaw does so for bytes of any form and keeps their length. Without it, where Mask is set,
	// replies that could not be decoded are not kept.
	MaskRaw  func([]byte) []byte
	Observer Observer
	Logger   *slog.Logger
}

// Servers is the set of env-servers that rollouts go to.
type Servers interface {
	// Bind picks the least loaded living one, and waits where one is being started again; release
	// when the rollout is over. Its errors are ctx's cause.
	Bind(ctx context.Context) (srv *server.Server, release func(), err error)
	// Down is closed when one has ended that nobody stopped and nobody starts again.
	Down() <-chan struct{}
}

// Observer is told what happens, from many goroutines. It must not block. A rollout is dispatched
// once for each try and ends once.
type Observer interface {
	Dispatched(key string, index int)
	Ended(key string, index int, outcome failure.Outcome, f *failure.Failure)
	Scored(scorer string, value *float64)
	Retried()
}

// Result is what an attempt leaves beside the journal.
type Result struct {
	// Stopped says why rollouts were left out or cancelled; nil when everything owed had its tries.
	Stopped error
}

// The reasons for which admission ends early, beside a server's death.
var (
	ErrDrained  = errors.New("drained: nothing new is dispatched")
	ErrFailFast = errors.New("fail_fast: a rollout ended in error")

	errServerDown = errors.New("an env-server has ended")
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
	flight, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	scoring, stopScoring := context.WithCancelCause(ctx)
	defer stopScoring(nil)
	admit, stop := context.WithCancelCause(flight)
	defer stop(nil)
	room := spec.MaxConcurrent
	if spec.Driver == nil { // a plugin-driven rollout holds its room, and an instance, from the start
		room += answered
	}
	e := &engine{
		Spec:  spec,
		slots: semaphore.NewWeighted(int64(spec.MaxConcurrent)), room: semaphore.NewWeighted(int64(room)),
		cancel: cancel, stopAdmission: stop, stopScoring: stopScoring,
	}
	if e.CheckEcho {
		e.holdBack()
	}
	e.scoring = newScoring(e)
	e.scoring.start(scoring)
	var watch sync.WaitGroup
	watch.Go(func() { e.watchStops(admit) })

	e.admit(admit, flight)
	e.inFlight.Wait()
	e.scoring.finish(scoring)
	var res Result
	if e.cut.Load() {
		res.Stopped = context.Cause(admit)
	}
	stop(nil)
	watch.Wait()
	return res, e.fatal()
}

// engine is one Run.
type engine struct {
	Spec
	slots, room   *semaphore.Weighted
	inFlight      sync.WaitGroup
	scoring       *scoring
	cancel        context.CancelCauseFunc // of everything in flight
	stopAdmission context.CancelCauseFunc
	stopScoring   context.CancelCauseFunc
	broken        atomic.Pointer[error] // what ended the whole attempt
	cut           atomic.Bool           // something owed was left out or cancelled
	held          atomic.Int64          // slots that are kept from everybody, see holdBack
}

// watchStops ends admission for the reasons that come from outside.
func (e *engine) watchStops(admit context.Context) {
	select {
	case <-e.Drain:
		e.stopAdmission(ErrDrained)
	case <-e.Servers.Down():
		e.stopAdmission(errServerDown)
	case <-admit.Done():
	}
}

// over reports whether admission has ended: at once, however late watchStops hears of it.
func (e *engine) over(admit context.Context) bool {
	select {
	case <-e.Drain:
		e.stopAdmission(ErrDrained)
	case <-e.Servers.Down():
		e.stopAdmission(errServerDown)
	default:
	}
	return admit.Err() != nil
}

// admit dispatches what is owed, in the task set's order, as room allows.
func (e *engine) admit(admit, flight context.Context) {
	for ordinal := range e.Tasks.Len() {
		for index := range e.Rollouts {
			state := e.Journal.State(ordinal, index)
			if state.Outcome.Finished() || e.Owed != nil && !e.Owed(state) {
				continue
			}
			if !e.enterRoom(admit) {
				e.cut.Store(true)
				return
			}
			e.inFlight.Go(func() {
				defer e.room.Release(1)
				e.rollout(flight, admit, ordinal, index, state.Tries)
			})
		}
	}
}

// enterRoom takes a place for one more rollout, and its first slot on the wire.
func (e *engine) enterRoom(admit context.Context) bool {
	if e.over(admit) || e.room.Acquire(admit, 1) != nil {
		return false
	}
	if !e.enter(admit) {
		e.room.Release(1)
		return false
	}
	return true
}

// enter takes a slot on the wire for the host's own call; a plugin's calls take theirs one by one.
func (e *engine) enter(admit context.Context) bool {
	if e.Driver == nil && e.slots.Acquire(admit, 1) != nil {
		return false
	}
	if e.over(admit) {
		e.leave()
		return false
	}
	return true
}

func (e *engine) leave() {
	if e.Driver == nil {
		e.slots.Release(1)
	}
}

// bind gives a living server for one try; false when there is none and will be none.
func (e *engine) bind(admit context.Context) (srv *server.Server, release func(), ok bool) {
	srv, release, err := e.Servers.Bind(admit)
	if err != nil {
		return nil, nil, false
	}
	select {
	case <-srv.Closing():
		release()
		e.stopAdmission(errServerDown)
		return nil, nil, false
	default:
		return srv, release, true
	}
}

// task reads a task of the set; size is its line's.
func (e *engine) task(ordinal int) (t *abi.Task, size int, err error) {
	raw, _, err := e.Tasks.Task(ordinal)
	if err != nil {
		return nil, 0, err
	}
	t, err = DecodeTask(raw)
	return t, len(raw), err
}

// failFast ends the others where that was asked for.
func (e *engine) failFast() {
	if e.FailFast {
		e.cut.Store(true)
		e.stopAdmission(ErrFailFast)
		e.cancel(ErrFailFast)
	}
}

// fail ends the whole attempt.
func (e *engine) fail(err error) {
	e.broken.CompareAndSwap(nil, &err)
	e.cut.Store(true)
	e.stopAdmission(err)
	e.cancel(fmt.Errorf("the attempt is over: %w", err)) // not the error of who found it
	e.stopScoring(err)
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
