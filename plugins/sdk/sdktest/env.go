//go:build !wasip1

package sdktest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/codec"
)

// env is the env-server of one rollout: the imports env_* by the words of abi.wat.
type env struct {
	host Host
	ctx  context.Context //nolint:containedctx // of the rollout: the imports that stand for it have no parameter
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a call finishes
	calls   map[int32]*envCall
	last    int32
	order   []int32 // finished, not yet given by await
	exited  bool
}

type envCall struct {
	cancel context.CancelFunc
	done   bool
	given  bool
	reply  abi.EnvReply
}

func newEnv(h Host) *env {
	ctx, stop := context.WithCancel(context.Background())
	return &env{host: h, ctx: ctx, stop: stop, changed: make(chan struct{}), calls: map[int32]*envCall{}}
}

// close ends what still runs and waits for it.
func (e *env) close() {
	e.stop()
	e.wg.Wait()
}

func (e *env) episode(id int64) *abi.Episode {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.calls[int32(id)]; c != nil && c.done {
		return c.reply.Episode
	}
	return nil
}

func (e *env) start(b []byte) int32 {
	r := codec.NewReader(b)
	req := codec.ReadEnvRequest(r)
	if r.End() != nil {
		return int32(abi.Invalid)
	}
	for k := range req.Sampling {
		if !slices.Contains(e.host.Sampling, k) {
			return int32(abi.Denied)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.exited:
		return int32(abi.ServerExited)
	case len(e.calls) >= abi.MaxHandles, e.last >= abi.MaxRuns:
		return int32(abi.LimitReached)
	}
	ctx, cancel := context.WithCancel(e.ctx)
	c := &envCall{cancel: cancel}
	e.last++
	id := e.last
	e.calls[id] = c
	e.wg.Go(func() {
		defer cancel()
		ep, err := e.host.Env(ctx, req)
		if ep == nil && err == nil {
			ep = &abi.Episode{}
		}
		e.finish(id, c, ep, err)
	})
	return id
}

func (e *env) finish(id int32, c *envCall, ep *abi.Episode, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.done = true
	if err != nil {
		c.reply.Err = asEnvError(err)
		e.exited = e.exited || c.reply.Err.Status == abi.ServerExited
	} else {
		c.reply.Episode = ep
	}
	e.order = append(e.order, id)
	close(e.changed)
	e.changed = make(chan struct{})
}

// next gives the handle that finished first and was not given yet; none reports that there is
// nothing to wait for.
func (e *env) next() (id int32, none bool, changed <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.order) > 0 {
		id, e.order = e.order[0], e.order[1:]
		if c := e.calls[id]; c != nil {
			c.given = true
			return id, false, nil
		}
	}
	none = true
	for _, c := range e.calls {
		none = none && c.given
	}
	return 0, none, e.changed
}

func (e *env) await(timeoutMS int32) int32 {
	var timeout <-chan time.Time
	if timeoutMS >= 0 {
		timer := time.NewTimer(time.Duration(timeoutMS) * time.Millisecond)
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		id, none, changed := e.next()
		switch {
		case id != 0:
			return id
		case none:
			return int32(abi.NotFound)
		}
		select {
		case <-changed:
		case <-timeout:
			return int32(abi.Deadline)
		}
	}
}

// with runs f on an open call, under the lock.
func (e *env) with(id int32, f func(*envCall) int32) int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.calls[id]; c != nil {
		return f(c)
	}
	return int32(abi.Invalid)
}

func (e *env) poll(id int32) int32 {
	return e.with(id, func(c *envCall) int32 {
		if c.done {
			return 1
		}
		return 0
	})
}

func (e *env) cancel(id int32) int32 {
	return e.with(id, func(c *envCall) int32 {
		c.cancel()
		return 0
	})
}

func (e *env) release(id int32) int32 {
	return e.with(id, func(c *envCall) int32 {
		c.cancel()
		delete(e.calls, id)
		return 0
	})
}

func (e *env) take(id int32) ([]byte, int32) {
	w := &codec.Writer{}
	status := e.with(id, func(c *envCall) int32 {
		if !c.done {
			return int32(abi.Invalid)
		}
		codec.WriteEnvReply(w, c.reply)
		return 0
	})
	return w.B, status
}
