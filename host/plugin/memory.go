//go:build unix

package plugin

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// largeFrom is how much of a memory most guests keep below.
const largeFrom = 4 << 20

// slab is an instance's linear memory: addresses for all that it may become, reserved at once, and pages
// that come as they are touched. So it never moves, growing costs nothing, and the garbage collector has
// nothing to clear or to wait for. It can be cut back, so that an instance whose call grew it can be used
// again.
//
// What is read from it is a view: good until the instance is closed, which is after its call has returned.
type slab struct {
	home *slabs
	buf  []byte // nil after Free
	size int
	top  int // what lies above is zero
	had  int // what lies above takes no memory
	// cut makes the next Reallocate shrink to so many bytes instead.
	cut int
}

// slabs are where slabs come from, and go to. The large ones of closed instances are cleared and kept, one a
// core: pages that are made anew cost as much as clearing these, but the thread that touches them cannot be
// stopped meanwhile, for milliseconds where the machine is a virtual one that has to ask its host for them.
type slabs struct {
	cores int
	idle  *atomic.Int64 // bytes of idle instances; what is kept is counted there
	most  int64

	mu      sync.Mutex
	kept    []*slab
	wiped   int // how many are being cleared
	closed  bool
	pending sync.WaitGroup // what is cleared, or given back, meanwhile
}

// get reserves size bytes of addresses, which take no memory yet, or takes such as are kept.
func (l *slabs) get(size int) (*slab, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.kept, func(s *slab) bool { return len(s.buf) == size }); i >= 0 {
		s := l.take(i)
		return &slab{home: l, buf: s.buf, had: s.had}, nil
	}
	buf, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("addresses for %d MiB of an instance's memory: %w", size>>20, err)
	}
	adviseLarge(buf)
	return &slab{home: l, buf: buf}, nil
}

// worth says whether a slab that takes had bytes is to be cleared, and put. No more than one a core is, or guests
// that use much memory in short calls would leave it behind faster than it can be cleared.
func (l *slabs) worth(had int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if had <= largeFrom || l.closed || l.wiped == l.cores || l.idle.Load()+int64(had) > l.most {
		return false
	}
	l.wiped++
	return true
}

// put takes a cleared slab; the one kept longest makes room for it.
func (l *slabs) put(s *slab) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wiped--
	if l.closed || l.idle.Load()+int64(s.had) > l.most {
		s.unmap()
		return
	}
	l.kept = append(l.kept, s)
	l.idle.Add(int64(s.had))
	if len(l.kept) > l.cores {
		l.take(0).unmap()
	}
}

// take takes out one of those that are kept, the oldest first. The caller holds mu.
func (l *slabs) take(i int) *slab {
	s := l.kept[i]
	l.kept = slices.Delete(l.kept, i, i+1)
	l.idle.Add(-int64(s.had))
	return s
}

// close gives back what is kept, and waits for what is on its way.
func (l *slabs) close() {
	l.mu.Lock()
	l.closed = true
	for len(l.kept) > 0 {
		l.take(0).unmap()
	}
	l.mu.Unlock()
	l.pending.Wait()
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
		s.top, s.had = max(s.top, s.size), max(s.had, s.size)
	}
	return s.buf[:s.size:s.size]
}

// Free implements experimental.LinearMemory. Once is enough. What takes long is not waited for: a call that
// has been stopped is over.
func (s *slab) Free() {
	was := *s
	if s.buf = nil; was.buf == nil {
		return
	}
	if !was.home.worth(was.had) {
		was.unmap()
		return
	}
	s.home.pending.Go(func() {
		wipe(was.buf[:was.top])
		s.home.put(&was)
	})
}

// trim gives back the memory above n, whole pages, and top or more.
func (s *slab) trim(n int) {
	if s.had > n {
		_ = unix.Madvise(s.buf[n:s.had], unix.MADV_DONTNEED) // pages that are ours
		s.had = n
	}
}

func (s *slab) unmap() { _ = unix.Munmap(s.buf) } // it is what Mmap gave

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

// wipeBytes is how much is cleared at a time: the runtime cannot stop it, and the garbage collector waits.
const wipeBytes = 256 << 10

// wipe clears b.
func wipe(b []byte) {
	for at := 0; at < len(b); at += wipeBytes {
		clear(b[at:min(at+wipeBytes, len(b))])
	}
}
