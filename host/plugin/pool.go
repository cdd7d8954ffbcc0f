package plugin

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// recycleCalls is after how many calls an instance is replaced, whatever the engine may have kept for it.
const recycleCalls = 1000

// pool keeps a plugin's idle instances: last in, first out, so that few are warm. How many run at
// once is the engine's business (cores, bytes).
type pool struct {
	mu   sync.Mutex
	idle []*instance
}

func (l *pool) take(e *Engine) *instance {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) == 0 {
		return nil
	}
	in := l.idle[len(l.idle)-1]
	l.idle = l.idle[:len(l.idle)-1]
	e.idle.Add(-in.held())
	return in
}

// put keeps an instance whose last call went well, or closes it.
func (l *pool) put(e *Engine, in *instance) {
	if !l.keep(e, in) {
		in.close()
	}
}

func (l *pool) keep(e *Engine, in *instance) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := len(l.idle) >= e.nCores || e.idle.Load()+in.held() > e.opt.InstanceBytes
	if full || !in.fit() || in.p.isClosed() {
		return false
	}
	l.idle = append(l.idle, in)
	e.idle.Add(in.held())
	return true
}

func (l *pool) drain(e *Engine) {
	for in := l.take(e); in != nil; in = l.take(e) {
		in.close()
	}
}

// ready gives an instance in the state that calls start from: an idle one put back, or a new one. The
// core is the caller's.
func (p *Plugin) ready(ctx context.Context) (*instance, error) {
	in := p.pool.take(p.engine)
	if in == nil {
		return p.spawn(ctx)
	}
	ok, err := p.image.put(ctx, in, p.image.size())
	if err == nil && ok {
		return in, nil
	}
	in.close()
	if err != nil {
		return nil, err
	}
	return p.spawn(ctx)
}

// back takes an instance after its last call, which ended with err.
func (p *Plugin) back(in *instance, err error) {
	p.observe(in)
	var guest *GuestError
	if err != nil && !errors.As(err, &guest) {
		in.close()
		return
	}
	p.pool.put(p.engine, in)
}

// withScorer lends an instance on a core to one scoring call.
func (p *Plugin) withScorer(ctx context.Context, f func(*instance) error) error {
	if err := p.use(); err != nil {
		return err
	}
	defer p.done()
	if err := acquire(ctx, p.engine.cores, 1); err != nil {
		return err
	}
	defer p.engine.cores.Release(1)
	in, err := p.ready(ctx)
	if err != nil {
		return err
	}
	err = f(in)
	p.back(in, err)
	return err
}

// withOwn lends an instance to a task enumeration or a rollout, which holds it over its waits.
func (p *Plugin) withOwn(ctx context.Context, f func(*instance) error) error {
	if err := p.use(); err != nil {
		return err
	}
	defer p.done()
	in, err := p.ownInstance(ctx)
	if err != nil {
		return err
	}
	err = f(in)
	p.back(in, err)
	return err
}

// withBudget holds a rollout instance's share of the byte budget while f runs.
func (p *Plugin) withBudget(ctx context.Context, f func() error) error {
	weight := min(p.weight.Load(), p.engine.opt.InstanceBytes)
	if err := acquire(ctx, p.engine.bytes, weight); err != nil {
		return err
	}
	defer p.engine.bytes.Release(weight)
	return f()
}

// ownInstance takes no more memory than is counted for it.
func (p *Plugin) ownInstance(ctx context.Context) (*instance, error) {
	if err := acquire(ctx, p.engine.cores, 1); err != nil {
		return nil, err
	}
	defer p.engine.cores.Release(1)
	in, err := p.ready(ctx)
	if err == nil {
		in.slab.trim(max(in.slab.top, int(p.weight.Load())))
	}
	return in, err
}

// observe notes what an instance has come to weigh.
func (p *Plugin) observe(in *instance) {
	for w, most := in.weight(), p.weight.Load(); w > most && !p.weight.CompareAndSwap(most, w); {
		most = p.weight.Load()
	}
}

// onCore runs one call of an own instance on a core.
func (p *Plugin) onCore(ctx context.Context, c *call, f func() error) error {
	if err := acquire(ctx, p.engine.cores, 1); err != nil {
		return err
	}
	c.onCore = true
	defer func() {
		if c.onCore {
			p.engine.cores.Release(1)
		}
	}()
	return f()
}

// park gives the core back and stops the clock while wait waits. ctx is the guest call's.
func (c *call) park(ctx context.Context, wait func()) {
	c.watch.pause()
	c.p.engine.cores.Release(1)
	c.onCore = false
	wait()
	if err := c.p.engine.cores.Acquire(ctx, 1); err != nil {
		panic(err) // the call is over: the engine turns this into its error
	}
	c.onCore = true
	c.watch.resume()
}

func acquire(ctx context.Context, s *semaphore.Weighted, n int64) error {
	if s.Acquire(ctx, n) != nil {
		return context.Cause(ctx)
	}
	return nil
}
