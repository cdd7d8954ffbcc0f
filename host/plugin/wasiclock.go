package plugin

import (
	"context"
	"encoding/binary"
	"math"
)

const (
	clockRealtime  = 0
	clockMonotonic = 1
)

// clockNow reads a clock in nanoseconds; the guest's other clocks do not exist.
func (w *world) clockNow(id uint32) (int64, bool) {
	switch id {
	case clockRealtime:
		sec, nsec := w.walltime()
		return sec*1e9 + int64(nsec), true
	case clockMonotonic:
		return w.nanotime(), true
	}
	return 0, false
}

func clockRes(_ context.Context, _ *call, a wasiArgs) errno {
	if id := a.u32(0); id != clockRealtime && id != clockMonotonic {
		return errInval
	}
	return a.putU64(1, uint64(clockStep))
}

func clockTime(_ context.Context, _ *call, a wasiArgs) errno {
	now, ok := a.w.clockNow(a.u32(0))
	if !ok {
		return errInval
	}
	return a.putU64(2, uint64(now))
}

// subscription is what poll_oneoff waits for: 48 bytes in, 32 bytes out.
type subscription struct {
	user   [8]byte
	kind   byte
	status errno
	// after is how many nanoseconds it takes; 0 = it is there.
	after int64
}

const (
	eventClock = 0
	eventRead  = 1
	eventWrite = 2

	sizeSubscription = 48
	sizeEvent        = 32
	maxSubscriptions = 1024
)

func (w *world) subscription(b []byte) (subscription, bool) {
	s := subscription{user: [8]byte(b), kind: b[8]}
	u32 := binary.LittleEndian.Uint32(b[16:])
	switch s.kind {
	case eventClock:
		now := int64(0)
		if binary.LittleEndian.Uint16(b[40:])&1 != 0 { // absolute
			var ok bool
			if now, ok = w.clockNow(u32); !ok {
				s.status = errInval
				return s, true
			}
		}
		at := binary.LittleEndian.Uint64(b[24:])
		s.after = max(int64(min(at, math.MaxInt64))-now, 0)
	case eventRead, eventWrite:
		if w.fds.get(u32) == nil {
			s.status = errBadf
		}
	default:
		return s, false
	}
	return s, true
}

// pollOneoff lets the clock jump to the first thing that happens. Descriptors are always ready: reads
// of standard input end at once.
func pollOneoff(ctx context.Context, c *call, a wasiArgs) errno {
	n := a.u32(2)
	if n == 0 || n > maxSubscriptions {
		return errInval
	}
	in, ok := a.view(0, n*sizeSubscription)
	if !ok {
		return errFault
	}
	out, ok := a.view(1, n*sizeEvent)
	if !ok {
		return errFault
	}
	c.burn(ctx, int64(n)*16)
	subs := make([]subscription, n)
	first := int64(math.MaxInt64)
	for i := range subs {
		if subs[i], ok = a.w.subscription(in[i*sizeSubscription:]); !ok {
			return errInval
		}
		first = min(first, subs[i].after)
	}
	if first > 0 {
		a.w.sleep(first)
		c.look(ctx) // of the real clock's sleeps, a few hundred fit into a quantum
	}
	events := uint32(0)
	for _, s := range subs {
		if s.after > first {
			continue
		}
		e := out[events*sizeEvent:][:sizeEvent]
		clear(e)
		copy(e, s.user[:])
		binary.LittleEndian.PutUint16(e[8:], uint16(s.status))
		e[10] = s.kind
		events++
	}
	return a.putU32(3, events)
}
