package plugin

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// image is the state that init left, which every scoring call, enumeration and rollout starts from:
// nothing of a call before can be seen by the next. Clock, randomness and log are the world's own and
// begin anew with each call. It holds granted variables, and so stays in memory.
type image struct {
	pages   [][]byte // of memory; nil = all zero
	globals []uint64
	fds     map[uint32]descriptor
	first   int64 // where the clock of calls starts
}

// size is how much memory the image is of.
func (im *image) size() int { return len(im.pages) * pageSize }

// headroom is how much calls of a Go guest commonly grow by.
const headroom = 1 << 20

// takeImage copies what in has become.
func takeImage(in *instance) *image {
	memory, _ := in.mod.Memory().Read(0, in.size())
	im := &image{fds: in.world.fds.snapshot(), first: in.world.first}
	zero := make([]byte, pageSize)
	for page := range slices.Chunk(memory, pageSize) {
		if bytes.Equal(page, zero) {
			page = nil
		}
		im.pages = append(im.pages, bytes.Clone(page))
	}
	for _, g := range in.globals {
		im.globals = append(im.globals, g.Get())
	}
	return im
}

// written is how much of the memory lies below the last page that is not zero, that page included.
func (in *instance) written() int {
	memory, _ := in.mod.Memory().Read(0, in.size())
	zero := make([]byte, pageSize)
	for bytes.HasSuffix(memory, zero) {
		memory = memory[:len(memory)-pageSize]
	}
	return len(memory)
}

// put makes in what the image says; from dirty on its memory is zero still. It reports false
// where that cannot be. An instance that it leaves with an error is none to use.
func (im *image) put(ctx context.Context, in *instance, dirty int) (bool, error) {
	if int(in.size()) > im.size() && !in.shrink(im.size()) {
		return false, nil
	}
	memory, ok := in.mod.Memory().Read(0, in.size())
	if !ok || len(memory) != im.size() {
		return false, nil
	}
	for i, page := range im.pages {
		at := i * pageSize
		switch { // a page at a time: the runtime can stop neither, and the garbage collector waits
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case page != nil:
			copy(memory[at:], page)
		case at < dirty:
			clear(memory[at : at+pageSize])
		}
	}
	for i, g := range in.globals {
		g.Set(im.globals[i])
	}
	in.world.first = im.first
	if err := in.world.fds.restore(im.fds); hostTrouble(err) != nil {
		return false, fmt.Errorf("%s: fs: %w", in.p.spec.Alias, err)
	} else if err != nil {
		return false, &GrantError{Alias: in.p.spec.Alias, Problems: []GrantProblem{{
			Capability: "fs", Msg: fmt.Sprintf("a file that init opened is gone: %s", scrub(err.Error())),
		}}}
	}
	return true, nil
}

// spawn makes an instance in the state that calls start from; the core is the caller's.
func (p *Plugin) spawn(ctx context.Context) (*instance, error) {
	if p.image == nil {
		return p.newInstance(ctx)
	}
	in, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	ok := true
	if more := p.image.size() - int(in.size()); more > 0 {
		_, ok = in.mod.Memory().Grow(uint32(more / pageSize))
	}
	if ok {
		ok, err = p.image.put(ctx, in, p.written)
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
	return im != nil && in.slab.top <= 4*(im.size()+headroom) && in.calls < recycleCalls
}
