package plugin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"github.com/wevalr/wevalr/plugins/abi"
)

// SelfCheck makes the same scoring call in every way that the host may come to make it, and compares
// response and fuel: on a new instance, on one that is made from init's state, on one that has served
// others before, on one that is put back, and on the engine's interpreter, which shares no code
// generator with its compiler. others are calls in between; none = the empty one.
//
// # Errors
//
// *ABIError of step "self-check" that says which way differs; those of a call that cannot be made.
func (p *Plugin) SelfCheck(ctx context.Context, req abi.ScoreRequest, others ...abi.ScoreRequest) error {
	if len(others) == 0 {
		others = []abi.ScoreRequest{{Scorer: req.Scorer}}
	}
	if err := p.use(); err != nil {
		return err
	}
	defer p.done()
	q, err := p.interpreted(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = q.rt.Close(ctx) }()
	if err := acquire(ctx, p.engine.cores, 1); err != nil {
		return err
	}
	defer p.engine.cores.Release(1)
	var first *sample
	for _, way := range []struct {
		name string
		p    *Plugin
		make func(*Plugin, context.Context) (*instance, error)
	}{
		{"on a new instance", p, (*Plugin).newInstance},
		{"from init's state", p, (*Plugin).spawn},
		{"on the interpreter", q, (*Plugin).newInstance},
	} {
		samples, err := way.p.samples(ctx, way.make, req, others)
		if err != nil {
			return err
		}
		for i, s := range samples {
			name := way.name + []string{"", ", after others", ", put back"}[i]
			if first == nil {
				first = &s
			} else if !first.equal(s) {
				return refuse(p.spec.Source, "self-check", "see that the scorer depends on its request and options only",
					"the same call differs %s:\n%s\nfirst it was:\n%s", name, s, first)
			}
		}
	}
	return nil
}

// interpreted is the plugin on the interpreter; only its instances are to be used.
func (p *Plugin) interpreted(ctx context.Context) (*Plugin, error) {
	b, err := p.engine.bytesOf(ctx, p.spec.Source)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != p.sha256 {
		return nil, &DigestError{File: p.spec.Source, Want: p.sha256, Got: hex.EncodeToString(sum[:])}
	}
	q := &Plugin{
		engine: p.engine, spec: p.spec, log: p.log, sha256: p.sha256, abi: p.abi, size: p.size, manifest: p.manifest,
		assets: p.assets, info: p.info, globals: p.globals, grants: p.grants, options: p.options, limits: p.limits,
		vars: p.vars, trees: p.trees, active: map[*call]context.CancelCauseFunc{}, weight: atomic.Int64{},
	}
	q.limits.ScoreWall *= 100
	q.limits.CallWall *= 100
	if err := q.link(ctx, wazero.NewRuntimeConfigInterpreter(), b); err != nil {
		if q.rt != nil {
			_ = q.rt.Close(ctx)
		}
		return nil, err
	}
	return q, nil
}

// sample is what one call came to.
type sample struct {
	response []byte
	fuel     uint64
	failed   string // kind of failure
}

func (s sample) equal(o sample) bool {
	return bytes.Equal(s.response, o.response) && s.fuel == o.fuel && s.failed == o.failed
}

func (s sample) String() string {
	return fmt.Sprintf("%d units of fuel, %s%.200q", s.fuel, s.failed, s.response)
}

// samples makes the call once on an instance as it is made, once after others, and once on the same
// instance put back after that.
func (p *Plugin) samples(
	ctx context.Context, made func(*Plugin, context.Context) (*instance, error), req abi.ScoreRequest, others []abi.ScoreRequest,
) ([]sample, error) {
	in, err := made(p, ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if in != nil {
			in.close()
		}
	}()
	im := p.image
	if im == nil && p.info.Seen.Resettable() {
		im = takeImage(in)
	}
	requests := append(append([]abi.ScoreRequest{req}, others...), req, req)
	var out []sample
	for i, r := range requests {
		s, err := p.sample(ctx, in, r)
		if err != nil {
			return nil, err
		}
		if i == 0 || i > len(others) {
			out = append(out, s)
		}
		back := false
		if im != nil && s.failed == "" {
			if back, err = im.put(ctx, in, im.size()); err != nil {
				return nil, err
			}
		}
		if !back {
			in.close()
			if in, err = made(p, ctx); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (p *Plugin) sample(ctx context.Context, in *instance, req abi.ScoreRequest) (sample, error) {
	raw, err := encode(p.manifest.Encoding, req)
	if err != nil {
		return sample{}, err
	}
	var s sample
	c := p.newCall(abi.OpScore, req.Seed)
	_, err = in.guarded(ctx, c, func(gctx context.Context) error {
		var err error
		s.response, err = in.exchange(gctx, c, raw)
		return err
	})
	s.fuel = c.tank.used()
	if trap, ok := errors.AsType[*TrapError](err); ok {
		s.failed = trap.Kind
	} else if limit, ok := errors.AsType[*LimitError](err); ok {
		s.failed = limit.Kind
	} else if err != nil {
		return sample{}, err
	}
	return s, nil
}
