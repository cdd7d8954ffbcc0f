package zmqio

import (
	"encoding/hex"
	"sync/atomic"
	"time"
)

// Reply is the answer to a call.
type Reply struct {
	// Deltas are the payloads of the answer's delta frames, in order.
	Deltas [][]byte
	// Payload is the reply's; nil when the call ended with an error.
	Payload []byte
	// Legacy is true when the server speaks the older dialect of two frames.
	Legacy bool
}

// Progress counts what comes back for one call while it runs. The zero value is ready for one call;
// all methods may be called at any time from anywhere.
type Progress struct {
	// OnFirst, if not nil, is called once with the payload of the call's first delta as soon as that
	// has arrived (of a call that is being cancelled, when it ends), and not at all when none comes. It
	// is set before the call and must not change the payload. It runs in the goroutine of [Client.Call],
	// which returns after it: that it is slow, or panics, is felt by this call alone.
	OnFirst func(payload []byte)

	sent, last, deltas, bytes atomic.Int64
}

// Sent is when the request was written; the zero time while it is queued.
func (p *Progress) Sent() time.Time { return stamp(p.sent.Load()) }

// Last is when the newest delta arrived, else when the request was written.
func (p *Progress) Last() time.Time { return stamp(max(p.last.Load(), p.sent.Load())) }

// Deltas is the number of deltas that have arrived.
func (p *Progress) Deltas() int64 { return p.deltas.Load() }

// Bytes is the number of payload bytes that have arrived, deltas and reply.
func (p *Progress) Bytes() int64 { return p.bytes.Load() }

func stamp(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

func (p *Progress) markSent() {
	if p != nil {
		p.sent.Store(time.Now().UnixNano())
	}
}

func (p *Progress) add(n int, delta bool) {
	if p == nil {
		return
	}
	p.bytes.Add(int64(n))
	if delta {
		p.last.Store(time.Now().UnixNano())
		p.deltas.Add(1)
	}
}

// The states of a call. Who moves it out of queued owns what follows: the writer to sent, anybody
// else to abandoned.
const (
	queued int32 = iota
	sent
	abandoned
)

// deltaCost is what a delta counts besides its bytes, so that empty ones cannot fill the memory.
const deltaCost = 64

// call is one request that is queued or of which an answer is due: the caller's, or a cancel.
type call struct {
	n       uint64 // the id within the connection
	method  string
	payload []byte // the writer's, once sent
	state   atomic.Int32
	seen    *Progress
	done    chan struct{} // closed when the call has ended; nil for a cancel
	first   chan []byte   // cap 1: the first delta; nil without OnFirst

	// Guarded by Client.mu until done is closed.
	of        *call // for a cancel: the call it cancels
	cancelled bool  // the server has answered this call's cancel: what follows is the aborted reply
	ended     bool  // done is closed; if it is still in the table, its answer is only counted
	deltas    [][]byte
	bytes     int64
	reply     []byte
	legacy    bool
	err       error
}

func newCall(method string, payload []byte, p *Progress) *call {
	k := &call{method: method, payload: payload, seen: p, done: make(chan struct{})}
	if p != nil && p.OnFirst != nil {
		k.first = make(chan []byte, 1)
	}
	return k
}

// Ids are 32 hexadecimal digits: the connection's random 16, then the call's number. They are never
// used twice, and one that was not issued here is recognised without keeping the old ones.
const idLen = 32

func (c *Client) id(dst []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, c.prefix[:]...)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, digits[n>>shift&15])
	}
	return dst
}

// issued reads an id back.
func (c *Client) issued(id []byte) (n uint64, ok bool) {
	if len(id) != idLen || string(id[:16]) != string(c.prefix[:]) {
		return 0, false
	}
	var b [8]byte
	if _, err := hex.Decode(b[:], id[16:]); err != nil {
		return 0, false
	}
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n, 0 < n && n <= c.last
}
