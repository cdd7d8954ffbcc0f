package plugin

import (
	"context"

	"github.com/tetratelabs/wazero/experimental"
)

// slab is an instance's linear memory: like the engine's own, but it grows with room to spare, and it
// can be cut back, so that an instance whose call grew it can be used again.
type slab struct {
	buf []byte
	top int // what lies above is zero
	max uint64
	// room is how much it begins with.
	room int
	// cut makes the next Reallocate shrink to so many bytes instead.
	cut int
	// over says that the call in progress has been stopped; nil = none is.
	over func() bool
}

// moveBytes is how much is copied or cleared at a time: the runtime cannot stop either, and the garbage
// collector waits for it.
const moveBytes = 256 << 10

// move copies src to the beginning of dst, and reports whether it did: it looks at stopped in between.
func move(dst, src []byte, stopped func() bool) bool {
	for at := 0; at < len(src); at += moveBytes {
		if stopped() {
			return false
		}
		copy(dst[at:], src[at:min(at+moveBytes, len(src))])
	}
	return true
}

// wipe clears b.
func wipe(b []byte) {
	for at := 0; at < len(b); at += moveBytes {
		clear(b[at:min(at+moveBytes, len(b))])
	}
}

// Reallocate implements experimental.LinearMemory. The engine asks for more only; it takes what it gets
// as the new size. It gets nothing for a call that has been stopped meanwhile: moving takes time.
func (s *slab) Reallocate(size uint64) []byte {
	if s.cut > 0 {
		wipe(s.buf[s.cut:s.top])
		s.top, s.cut, s.buf = s.cut, 0, s.buf[:s.cut]
		return s.buf
	}
	stopped := func() bool { return s.over != nil && s.over() }
	if n := int(size); n > cap(s.buf) {
		if stopped() {
			return nil
		}
		room := s.room
		if s.buf != nil {
			room = 2 * n
		}
		grown := make([]byte, n, max(n, min(room, int(s.max))))
		if !move(grown, s.buf, stopped) {
			return nil
		}
		s.buf = grown
	} else {
		s.buf = s.buf[:n]
	}
	s.top = max(s.top, len(s.buf))
	return s.buf
}

// Free implements experimental.LinearMemory. There is nothing to give back that the garbage collector
// does not: views into the memory stay valid whatever becomes of the instance.
func (s *slab) Free() {}

// withSlab makes the instance that is made under ctx have a slab with room for so many bytes.
func withSlab(ctx context.Context, room int) (context.Context, *slab) {
	s := &slab{room: room}
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(
		func(_, limit uint64) experimental.LinearMemory {
			s.max = limit
			return s
		})), s
}

// shrink cuts the memory back to n bytes. Growing is the only way to make the engine ask for a new size:
// that fails where the memory has reached its limit, and is checked, not trusted.
func (in *instance) shrink(n int) bool {
	in.slab.cut = n
	_, ok := in.mod.Memory().Grow(1)
	in.slab.cut = 0
	return ok && int(in.size()) == n
}
