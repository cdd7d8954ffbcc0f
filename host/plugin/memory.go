//go:build unix

package plugin

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// slab is an instance's linear memory: addresses for all that it may become, reserved at once, and pages
// that come as they are touched. So it never moves, growing costs nothing, and the garbage collector has
// nothing to clear or to wait for. It can be cut back, so that an instance whose call grew it can be used
// again.
//
// What is read from it is a view: good until the instance is closed, which is after its call has returned.
type slab struct {
	buf  []byte // nil after Free
	size int
	top  int // what lies above is zero
	// cut makes the next Reallocate shrink to so many bytes instead.
	cut int
}

// newSlab reserves size bytes of addresses, which take no memory yet.
func newSlab(size int) (*slab, error) {
	buf, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("addresses for %d MiB of an instance's memory: %w", size>>20, err)
	}
	adviseLarge(buf)
	return &slab{buf: buf}, nil
}

// Reallocate implements experimental.LinearMemory. The engine asks for more only; it takes what it gets
// as the new size.
func (s *slab) Reallocate(size uint64) []byte {
	switch {
	case s.cut > 0:
		wipe(s.buf[s.cut:s.top])
		s.top, s.size, s.cut = s.cut, s.cut, 0
	case size > uint64(len(s.buf)):
		return nil
	default:
		s.size = int(size)
		s.top = max(s.top, s.size)
	}
	return s.buf[:s.size:s.size]
}

// Free implements experimental.LinearMemory: it gives everything back. Once is enough.
func (s *slab) Free() {
	if s.buf != nil {
		_ = unix.Munmap(s.buf) // it is what Mmap gave
		s.buf = nil
	}
}

// in makes the instance that is made under ctx have the slab.
func (s *slab) in(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(
		func(_, _ uint64) experimental.LinearMemory { return s }))
}

// shrink cuts the memory back to n bytes. Growing is the only way to make the engine ask for a new size:
// that fails where the memory has reached its limit, and is checked, not trusted.
func (in *instance) shrink(n int) bool {
	in.slab.cut = n
	_, ok := in.mod.Memory().Grow(1)
	in.slab.cut = 0
	return ok && int(in.size()) == n
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
