package plugin

import (
	"context"
	"fmt"
)

// image is the state that init left, which every scoring call, enumeration and rollout starts from:
// nothing of a call before can be seen by the next. Clock, randomness and log are the world's own and
// begin anew with each call. It holds granted variables, and so stays in memory.
type image struct {
	memory  []byte
	globals []uint64
	fds     map[uint32]descriptor
	first   int64 // where the clock of calls starts
}

// headroom is how much calls of a Go guest commonly grow by.
const headroom = 1 << 20

// takeImage copies what in has become.
func takeImage(in *instance) *image {
	memory, _ := in.mod.Memory().Read(0, in.size())
	im := &image{memory: make([]byte, len(memory)), fds: in.world.fds.snapshot(), first: in.world.first}
	move(im.memory, memory, func() bool { return false })
	for _, g := range in.globals {
		im.globals = append(im.globals, g.Get())
	}
	return im
}

// put makes in what the image says. It reports false where that cannot be. An instance that it leaves with an
// error is none to use.
func (im *image) put(ctx context.Context, in *instance) (bool, error) {
	if int(in.size()) > len(im.memory) && !in.shrink(len(im.memory)) {
		return false, nil
	}
	memory, ok := in.mod.Memory().Read(0, in.size())
	if !ok || len(memory) != len(im.memory) {
		return false, nil
	}
	if !move(memory, im.memory, func() bool { return ctx.Err() != nil }) {
		return false, context.Cause(ctx)
	}
	for i, g := range in.globals {
		g.Set(im.globals[i])
	}
	in.world.first = im.first
	if err := in.world.fds.restore(im.fds); err != nil {
		return false, &GrantError{Alias: in.p.spec.Alias, Problems: []GrantProblem{{
			Capability: "fs", Msg: fmt.Sprintf("a file that init opened is gone: %s", scrub(err.Error())),
		}}}
	}
	return true, nil
}

// spawn makes an instance in the state that calls start from; the core is the caller's.
func (p *Plugin) spawn(ctx context.Context) (*instance, error) {
	if p.image == nil {
		in, _, err := p.newInstance(ctx)
		return in, err
	}
	in, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	ok := true
	if more := len(p.image.memory) - int(in.size()); more > 0 {
		_, ok = in.mod.Memory().Grow(uint32(more / pageSize))
	}
	if ok {
		ok, err = p.image.put(ctx, in)
	}
	if err == nil && !ok {
		err = &ABIError{File: p.spec.Alias, Step: "instantiate", Msg: "no room for the state that init left"}
	}
	if err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// fit says whether an instance whose last call went well can be put back for another: one that has grown
// far is worth less than its memory.
func (in *instance) fit() bool {
	im := in.p.image
	return im != nil && in.slab.top <= 4*(len(im.memory)+headroom) && in.calls < recycleCalls
}
