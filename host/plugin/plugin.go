package plugin

import (
	"context"
	"slices"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Alias is the plugin's name in this run: the key everywhere.
func (p *Plugin) Alias() string { return p.spec.Alias }

// Manifest is shared: do not change it.
func (p *Plugin) Manifest() *Manifest { return p.manifest }

// SHA256 is the module's, in hex.
func (p *Plugin) SHA256() string { return p.sha256 }

// ABI is the version that the module was built for, such as "1.0".
func (p *Plugin) ABI() string { return p.abi }

// Size is the module's, in bytes.
func (p *Plugin) Size() int { return p.size }

// Effective is requested ∩ granted.
func (p *Plugin) Effective() Grants { return p.grants }

// Scorers are the manifest's.
func (p *Plugin) Scorers() []Scorer { return slices.Clone(p.manifest.Scorers) }

// Provides reports whether the plugin has a role, such as abi.ProvidesTask.
func (p *Plugin) Provides(role string) bool { return slices.Contains(p.manifest.Provides, role) }

// TaskCount is how many tasks the plugin says it has, nil where it does not know.
func (p *Plugin) TaskCount() *int64 { return p.tasks }

// Close ends the calls that are in the guest (they return ErrClosed), waits for them under ctx,
// and frees the plugin. Calls after it return ErrClosed. After an error it may be called again.
func (p *Plugin) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		for _, cancel := range p.active {
			cancel(ErrClosed)
		}
		if p.users == 0 {
			close(p.unused)
		}
	}
	p.mu.Unlock()
	select {
	case <-p.unused:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.freed.Do(func() {
		p.pool.drain(p.engine)
		p.unbind(ctx)
	})
	return nil
}

// use keeps the plugin from being freed until done.
func (p *Plugin) use() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.users++
	return nil
}

func (p *Plugin) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users == 0 && p.closed {
		close(p.unused)
	}
}

// enter registers a call in the guest, so that Close can end it.
func (p *Plugin) enter(c *call, cancel context.CancelCauseFunc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.active[c] = cancel
	return nil
}

func (p *Plugin) leave(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.active, c)
}

func (p *Plugin) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *Plugin) host() abi.HostInfo {
	return abi.HostInfo{Name: "wevalr", Version: p.engine.opt.HostVersion, ABIMajor: abi.Major, ABIMinor: abi.Minor}
}

// clean makes a guest's text safe to show and hides secrets in it.
func (p *Plugin) clean(s string) string {
	if p.spec.Mask != nil {
		s = p.spec.Mask(s)
	}
	return scrub(s)
}

// tail is the end of what the guest wrote.
func (p *Plugin) tail(r *ring) string {
	const shown = 4 << 10
	s := p.clean(r.text())
	if len(s) > shown {
		s = "…" + s[len(s)-shown:]
	}
	return scrub(s)
}
