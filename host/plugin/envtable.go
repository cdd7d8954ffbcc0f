package plugin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/plugins/abi"
)

// Env runs requests to the env-server for a rollout. It is called from many goroutines.
type Env interface {
	// Run drives one run and returns when it has ended, soon after ctx has. call numbers the guest's
	// requests from 0, in the order in which it made them. ref is the caller's
	// name for the episode, view what the guest may see of it. An *abi.EnvError reaches the guest as
	// it is; other errors are mapped.
	Run(ctx context.Context, call int, req abi.EnvRequest) (ref int, view *abi.Episode, err error)
}

var (
	errGuestCancel = errors.New("cancelled by the plugin")
	errCallOver    = errors.New("the rollout call has ended")
)

// What a call holds of the host's memory: maxReplies bounds the bytes of finished replies, maxRequests those of
// requests that run.
const (
	maxReplies  = 256 << 20
	maxRequests = 256 << 20
)

// envTable holds the handles of one rollout call. Its methods are called by the guest's goroutine,
// finish by those of the runs.
type envTable struct {
	env      Env
	encoding string
	sampling []string // granted keys
	taskEnv  []string // granted keys

	mu       sync.Mutex
	next     int32
	handles  map[int32]*handle
	running  int           // closed handles that still run included
	finished []int32       // in order, not yet given by await
	signal   chan struct{} // capacity 1: something finished
	bytes    int           // of replies
	asked    int           // bytes of the requests that run
	wg       sync.WaitGroup
}

// handle is one env request.
type handle struct {
	cancel context.CancelCauseFunc
	size   int // of the request
	done   bool
	reply  []byte
	ref    int
	ok     bool // ref counts
}

func newEnvTable(env Env, encoding string, g Grants) *envTable {
	return &envTable{
		env: env, encoding: encoding, sampling: g.Env.Sampling, taskEnv: g.TaskEnv,
		handles: map[int32]*handle{}, signal: make(chan struct{}, 1),
	}
}

// start checks a request and runs it in a goroutine under ctx.
func (t *envTable) start(ctx context.Context, raw []byte) int32 {
	req, status := t.request(raw)
	if status != 0 {
		return int32(status)
	}
	if ctx.Err() != nil {
		return int32(statusOf(context.Cause(ctx)))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next >= abi.MaxRuns || len(t.handles) >= abi.MaxHandles || t.running >= abi.MaxHandles || t.asked+len(raw) > maxRequests {
		return int32(abi.LimitReached)
	}
	t.next++
	rctx, cancel := context.WithCancelCause(ctx)
	id, h := t.next, &handle{cancel: cancel, size: len(raw)}
	t.handles[id] = h
	t.running++
	t.asked += h.size
	t.wg.Go(func() {
		ref, view, err := t.env.Run(rctx, int(id)-1, req)
		if err == nil && view == nil {
			view = &abi.Episode{}
		}
		t.finish(id, h, ref, view, err)
		cancel(nil)
	})
	return id
}

// request decodes strictly and checks grants; a status of 0 = fine.
func (t *envTable) request(raw []byte) (abi.EnvRequest, abi.Status) {
	var req abi.EnvRequest
	if len(raw) > abi.MaxRequest {
		return req, abi.TooLarge
	}
	fields, err := decodeFields(t.encoding, raw)
	if err != nil {
		return req, abi.Invalid
	}
	for k := range fields {
		if k != "task_data" && k != "sampling" {
			return req, abi.Invalid
		}
	}
	if err := decode(t.encoding, raw, &req); err != nil || req.TaskData == nil {
		return req, abi.Invalid
	}
	if plainMap(req.TaskData) != nil || plainMap(req.Sampling) != nil {
		return req, abi.Invalid
	}
	for k := range req.Sampling {
		if !slices.Contains(t.sampling, k) {
			return req, abi.Denied
		}
	}
	if ungranted(req.TaskData, t.taskEnv) != "" {
		return req, abi.Denied
	}
	return req, 0
}

// ungranted names a key of task data that steers the server's machine without a grant, "" for none.
func ungranted(data map[string]any, granted []string) string {
	for _, k := range TaskEnvKeys() {
		if _, there := data[k]; there && !slices.Contains(granted, k) {
			return k
		}
	}
	return ""
}

func (t *envTable) finish(id int32, h *handle, ref int, view *abi.Episode, err error) {
	reply := abi.EnvReply{Episode: view}
	if err != nil {
		reply = abi.EnvReply{Err: envError(err)}
	}
	b, encErr := encode(t.encoding, reply)
	t.mu.Lock()
	defer t.mu.Unlock()
	if encErr == nil && t.bytes+len(b) > maxReplies {
		encErr = errors.New("the replies of this rollout are over their limit together")
	}
	if encErr != nil {
		err = encErr
		b, _ = encode(t.encoding, abi.EnvReply{Err: &abi.EnvError{
			Status: abi.TooLarge, Source: string(failure.Host), Kind: "too_large", Message: encErr.Error(),
		}})
	}
	h.done, h.reply, h.ref, h.ok = true, b, ref, err == nil
	t.running--
	t.asked -= h.size
	if t.handles[id] == h {
		t.bytes += len(b)
		t.finished = append(t.finished, id)
	}
	select {
	case t.signal <- struct{}{}:
	default:
	}
}

// pop gives a finished handle once; open says whether one is still to come.
func (t *envTable) pop() (id int32, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.finished) > 0 {
		id, t.finished = t.finished[0], t.finished[1:]
		if h := t.handles[id]; h != nil {
			return id, true
		}
	}
	for _, h := range t.handles {
		if !h.done {
			return 0, true
		}
	}
	return 0, false
}

// await waits for a finished handle. It calls park around the wait, if there is one.
func (t *envTable) await(ctx context.Context, timeoutMS int32, park func(wait func())) int32 {
	id, open := t.pop()
	if id != 0 {
		return id
	}
	if !open {
		return int32(abi.NotFound)
	}
	if timeoutMS == 0 {
		return int32(abi.Deadline)
	}
	var late <-chan time.Time
	if timeoutMS > 0 {
		timer := time.NewTimer(time.Duration(timeoutMS) * time.Millisecond)
		defer timer.Stop()
		late = timer.C
	}
	status := abi.Internal
	park(func() {
		for {
			if id, open = t.pop(); id != 0 || !open {
				status = abi.NotFound
				return
			}
			select {
			case <-t.signal:
			case <-late:
				status = abi.Deadline
				return
			case <-ctx.Done(): // the guest call itself is over
				status = abi.Cancelled
				return
			}
		}
	})
	if id != 0 {
		return id
	}
	return int32(status)
}

func (t *envTable) poll(id int32) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.handles[id]
	switch {
	case h == nil:
		return int32(abi.Invalid)
	case h.done:
		return 1
	}
	return 0
}

func (t *envTable) cancel(id int32) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.handles[id]
	if h == nil {
		return int32(abi.Invalid)
	}
	h.cancel(errGuestCancel)
	return 0
}

// reply is the finished handle's bytes.
func (t *envTable) reply(id int32) ([]byte, abi.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.handles[id]
	if h == nil || !h.done {
		return nil, abi.Invalid
	}
	return h.reply, 0
}

func (t *envTable) close(id int32) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.handles[id]
	if h == nil {
		return int32(abi.Invalid)
	}
	delete(t.handles, id)
	h.cancel(errGuestCancel)
	if h.done {
		t.bytes -= len(h.reply)
	}
	return 0
}

// ref is the episode that an open, finished handle stands for.
func (t *envTable) ref(id int64) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id < 1 || id > int64(t.next) {
		return 0, false
	}
	h := t.handles[int32(id)]
	if h == nil || !h.done || !h.ok {
		return 0, false
	}
	return h.ref, true
}

// end cancels and awaits what is left.
func (t *envTable) end() {
	t.mu.Lock()
	for _, h := range t.handles {
		h.cancel(errCallOver)
	}
	t.mu.Unlock()
	t.wg.Wait()
}

// The imports, see abi.wat.

func envStart(ctx context.Context, c *call, a args) int32 {
	raw := a.bytes(0)
	c.burn(ctx, int64(len(raw)))
	return c.start(append([]byte(nil), raw...))
}

func envAwait(ctx context.Context, c *call, a args) int32 {
	return c.env.await(ctx, a.i32(0), func(wait func()) { c.park(ctx, wait) })
}

func envPoll(_ context.Context, c *call, a args) int32   { return c.env.poll(a.i32(0)) }
func envCancel(_ context.Context, c *call, a args) int32 { return c.env.cancel(a.i32(0)) }
func envClose(_ context.Context, c *call, a args) int32  { return c.env.close(a.i32(0)) }

func envTake(ctx context.Context, c *call, a args) int32 {
	b, status := c.env.reply(a.i32(0))
	if status != 0 {
		return int32(status)
	}
	c.burn(ctx, int64(len(b)/hostByte))
	return a.put(1, b)
}

// envError is what a guest learns of an error: as it is, or mapped.
func envError(err error) *abi.EnvError {
	if e, ok := errors.AsType[*abi.EnvError](err); ok {
		return e
	}
	if errors.Is(err, errGuestCancel) || errors.Is(err, errCallOver) {
		return &abi.EnvError{
			Status: abi.Cancelled, Source: string(failure.Cancelled), Kind: "caller", Message: err.Error(),
		}
	}
	f := failure.Of(err)
	return &abi.EnvError{Status: statusOf(err), Source: string(f.Source), Kind: f.Kind, Message: f.Message}
}

// statusOf is INTERNAL, or CANCELLED where a context ended.
func statusOf(err error) abi.Status {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		failure.Of(err).Source == failure.Cancelled {
		return abi.Cancelled
	}
	return abi.Internal
}
