package zmqio

import (
	"cmp"
	"log/slog"
	"time"
)

// Options are a client's. The zero value of each field stands for its default.
type Options struct {
	// ReplyMax bounds one answer, deltas and reply together, in bytes; each delta counts 64 more.
	// Past it that call alone ends with a [TooLargeError] and is cancelled. Default 1 GiB.
	ReplyMax int64
	// Budget bounds the bytes of answers held for calls that have not returned. Past it no call is
	// admitted and the newest are given up. One more frame (at most ReplyMax) may be in memory while
	// it is read. Default 2 GiB.
	Budget int64
	// MaxPending bounds the calls in flight and draining; one more waits. Default 65536.
	MaxPending int
	// CancelGrace is how long a cancelled call waits for the server's two replies. Default 10 s.
	CancelGrace time.Duration
	// WriteStall ends a connection of which the peer takes nothing for so long. Default 60 s.
	WriteStall time.Duration
	// Handshake bounds one ZMTP handshake. Default 5 s.
	Handshake time.Duration
	// DialRetry is the pause between two attempts of [Dial]. Default 20 ms.
	DialRetry time.Duration
	// CancelPayload encodes the payload of the method "cancel" for a request's id; it must be pure.
	// nil: cancelled calls are only abandoned.
	CancelPayload func(id string) []byte
	// Logger gets what goes wrong without ending the connection; nil discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.ReplyMax = cmp.Or(o.ReplyMax, 1<<30)
	o.Budget = cmp.Or(o.Budget, 2<<30)
	o.MaxPending = cmp.Or(o.MaxPending, 1<<16)
	o.CancelGrace = cmp.Or(o.CancelGrace, 10*time.Second)
	o.WriteStall = cmp.Or(o.WriteStall, 60*time.Second)
	o.Handshake = cmp.Or(o.Handshake, 5*time.Second)
	o.DialRetry = cmp.Or(o.DialRetry, 20*time.Millisecond)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func (o Options) limits() limits {
	return limits{keep: o.ReplyMax, frame: max(o.ReplyMax, skipMax), handshake: o.Handshake, stall: o.WriteStall}
}

// ServerOptions are a server's. The zero value of each field stands for its default.
type ServerOptions struct {
	// MaxConns bounds the connections; one more is closed at once. Default 64.
	MaxConns int
	// MaxRuns bounds the runs whose handler works at the same time, over all connections; the others
	// wait, and can be cancelled. Default: no bound.
	MaxRuns int
	// RequestMax bounds one request in bytes. Default 256 MiB.
	RequestMax int64
	// HeldBytes bounds the payloads of one connection's runs that have not been answered. A client
	// that asks for more is cut off, as one with too many runs is. Default 4 GiB.
	HeldBytes int64
	// QueueBytes bounds what waits to be written on one connection. A handler that answers more
	// waits. Default 64 MiB.
	QueueBytes int64
	// WriteStall closes a connection of which the client takes nothing for so long. Default 60 s.
	WriteStall time.Duration
	// Handshake bounds one ZMTP handshake. Default 5 s.
	Handshake time.Duration
	// AllowUID says whose processes may connect over ipc. nil: only this process's own user.
	AllowUID func(uid int) bool
	// Logger gets refused and broken connections; nil discards.
	Logger *slog.Logger
}

func (o ServerOptions) withDefaults(self int) ServerOptions {
	o.MaxConns = cmp.Or(o.MaxConns, 64)
	o.RequestMax = cmp.Or(o.RequestMax, 256<<20)
	o.HeldBytes = cmp.Or(o.HeldBytes, 4<<30)
	o.QueueBytes = cmp.Or(o.QueueBytes, 64<<20)
	o.WriteStall = cmp.Or(o.WriteStall, 60*time.Second)
	o.Handshake = cmp.Or(o.Handshake, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.AllowUID == nil {
		o.AllowUID = func(uid int) bool { return uid == self }
	}
	return o
}

func (o ServerOptions) limits() limits {
	return limits{keep: o.RequestMax, frame: o.RequestMax, handshake: o.Handshake, stall: o.WriteStall}
}
