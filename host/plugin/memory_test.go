package plugin

import (
	"bytes"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/wasm"
)

// A memory grows where it is, up to its limit, and is zero above what it was cut back to.
func TestSlab(t *testing.T) {
	s, err := new(slabs).get(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	small := s.Reallocate(1 << 20)
	large := s.Reallocate(4 << 20)
	if len(small) != 1<<20 || len(large) != 4<<20 || &small[0] != &large[0] {
		t.Errorf("got %d bytes, then %d, want them in one place", len(small), len(large))
	}
	if got := s.Reallocate(4<<20 + 1); got != nil {
		t.Errorf("got %d bytes, over the limit", len(got))
	}
	for i := range large {
		large[i] = 7
	}
	s.cut = 1 << 20
	if got := s.Reallocate(5 << 20); len(got) != 1<<20 || got[0] != 7 || got[len(got)-1] != 7 {
		t.Errorf("got %d bytes, want what was cut back to", len(got))
	}
	s.cut = 0
	again := s.Reallocate(2 << 20)
	if i := slices.IndexFunc(again[1<<20:], func(b byte) bool { return b != 0 }); i >= 0 {
		t.Errorf("byte %d above the cut is not zero", i)
	}
	s.Free() // and once more at the end
}

// Addresses that cannot be had are an error, and nothing worse.
func TestSlab_NoAddresses(t *testing.T) {
	if s, err := new(slabs).get(1 << 47); err == nil {
		s.Free()
		t.Error("got more addresses than a process has")
	}
}

// touched is a memory of which a guest has filled so much.
func touched(t *testing.T, l *slabs, size, top int) *slab {
	t.Helper()
	s, err := l.get(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	b := s.Reallocate(uint64(top))
	if bytes.ContainsFunc(b, func(r rune) bool { return r != 0 }) {
		t.Error("a memory is not zero")
	}
	for i := range b {
		b[i] = 7
	}
	return s
}

// Large memories are kept for others, cleared: one for each core, within the budget, until the end.
func TestSlabs_Kept(t *testing.T) {
	const size, top = 16 << 20, 8 << 20
	var idle atomic.Int64
	l := &slabs{cores: 2, idle: &idle, most: 3 * top}
	free := func(ss ...*slab) {
		for _, s := range ss {
			s.Free()
			s.Free() // which is nothing
		}
		l.pending.Wait()
	}
	kept := func(n int) {
		t.Helper()
		if len(l.kept) != n || idle.Load() != int64(n*top) {
			t.Errorf("%d memories are kept, of %d MiB, want %d", len(l.kept), idle.Load()>>20, n)
		}
	}
	free(touched(t, l, size, largeFrom)) // not worth it
	kept(0)
	first := touched(t, l, size, top)
	at := &first.buf[0]
	free(first)
	kept(1)
	other := touched(t, l, size+pageSize, top)
	kept(1) // of another size
	again := touched(t, l, size, top)
	if &again.buf[0] != at {
		t.Error("what was kept is not used")
	}
	kept(0)
	free(again)
	free(other)
	free(touched(t, l, size+2*pageSize, top))
	kept(2) // the newest
	if slices.ContainsFunc(l.kept, func(s *slab) bool { return len(s.buf) == size }) {
		t.Error("the oldest is kept")
	}
	l.close()
	kept(0)
	free(touched(t, l, size, top))
	kept(0)

	l = &slabs{cores: 2, idle: &idle, most: top}
	free(touched(t, l, size, top), touched(t, l, size, top))
	kept(1) // within the budget
	l.close()
	kept(0)
}

// What is not kept is not cleared, and of what may be kept, one for each core at a time.
func TestSlabs_Worth(t *testing.T) {
	const top = 8 << 20
	var idle atomic.Int64
	l := &slabs{cores: 2, idle: &idle, most: 2 * top}
	for _, had := range []int{largeFrom, 2*top + 1} {
		if l.worth(had) {
			t.Errorf("%d bytes are worth clearing", had)
		}
	}
	for i := range 3 {
		if got := l.worth(top); got != (i < l.cores) {
			t.Errorf("number %d is worth clearing: %t", i, got)
		}
	}
	s := touched(t, l, top, top)
	s.Free()
	if l.pending.Wait(); len(l.kept) != 0 || idle.Load() != 0 {
		t.Error("a third is kept")
	}
	l.put(&slab{home: l})
	if !l.worth(top) {
		t.Error("none can be cleared when one is done")
	}
	l.close()
	if l.wiped--; l.worth(top) {
		t.Error("one is cleared after the end")
	}
}

// An instance that is held over waits has no more than what is counted for it, whoever had its memory before; one
// that scores has it all, which counts while it is idle.
func TestSlabs_Had(t *testing.T) {
	const had = 32 << 20
	p := loadGuest(t, scoring(score("1")))
	l := &p.engine.slabs
	keep := func() {
		p.pool.drain(p.engine)
		touched(t, l, p.limits.MemoryMiB<<20, had).Free()
		l.pending.Wait()
	}
	keep()
	in, err := p.ownInstance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.kept) != 0 || in.held() > p.weight.Load()+1<<20 {
		t.Errorf("%d memories are kept; the instance holds %d bytes, of which %d count", len(l.kept), in.held(), p.weight.Load())
	}
	memory := in.slab.Reallocate(had)
	if bytes.ContainsFunc(memory, func(r rune) bool { return r == 7 }) {
		t.Error("what was given back is not zero")
	}
	in.close()
	l.close()
	l.closed = false

	keep()
	if got := scoreOf(t, p, "any", abi.Task{}, ""); got != 1 {
		t.Errorf("scored %v", got)
	}
	if got, want := p.engine.idle.Load(), int64(had+1<<20); got != want {
		t.Errorf("%d bytes are idle, want %d", got, want)
	}
}

// A guest whose init takes all of 32 bits gets a page less, and calls start from there: the engine says of exactly
// 4 GiB that it is nothing.
func TestScore_AllAddresses(t *testing.T) {
	g := &guest{Manifest: wasm.ScorerManifest + "[limits]\nmemory_mib = 4096\n", Pages: [2]int{4, 65536}}
	grow := slices.Concat(wasm.I32Const(1), []byte{0x40, 0}, wasm.I32Const(-1), []byte{0x47, 0x0d, 0})
	g.Init = slices.Concat([]byte{0x03, 0x40}, grow, []byte{0x0b}, g.Answer(`{"ok":{}}`)) // as long as there is a page more
	g.Body = slices.Concat([]byte{0x3f, 0}, wasm.Expect(4095<<20/pageSize), g.Answer(score("1")))
	p := loadGuest(t, g, func(s *Spec) { s.Limits.MemoryMiB = 4096 })
	for range 2 {
		if got := scoreOf(t, p, "any", abi.Task{}, ""); got != 1 {
			t.Errorf("scores %v, want 1", got)
		}
	}
}
