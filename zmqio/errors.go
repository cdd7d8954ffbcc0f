package zmqio

import (
	"errors"
	"fmt"
	"time"
)

// The sentinels of this package. ErrCancelled, ErrPeerGone and ErrClosed are the causes with which
// a handler's context ends.
var (
	ErrClosed    = errors.New("closed")
	ErrCancelled = errors.New("cancelled by request")
	ErrPeerGone  = errors.New("peer is gone")
	ErrReplied   = errors.New("the reply has been sent")
)

// ConnError says that a call ended because its connection did, or because it was refused.
type ConnError struct {
	Cause error
	// Sent is false when no byte of the request went out; else the server may have seen it.
	Sent bool
}

// Error is total.
func (e *ConnError) Error() string {
	if e == nil || e.Cause == nil {
		return "zmqio: connection: ended"
	}
	return "zmqio: connection: " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *ConnError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Cause
}

// TooLargeError says that a call was given up because of the bytes of its answer.
type TooLargeError struct {
	// Bytes is what was seen, Max the limit that it passed.
	Bytes, Max int64
	// Budget is true when it was not this answer but all of them together ([Options.Budget]).
	Budget bool
}

// Error is total.
func (e *TooLargeError) Error() string {
	if e == nil {
		e = &TooLargeError{}
	}
	if e.Budget {
		return fmt.Sprintf("zmqio: answer: given up: all answers held need %d bytes, the budget is %d", e.Bytes, e.Max)
	}
	return fmt.Sprintf("zmqio: answer: too large: %d bytes, at most %d", e.Bytes, e.Max)
}

// ProtocolError says how a peer broke the protocol. It is permanent: [Dial] does not try again.
type ProtocolError struct {
	Text string
}

// Error is total.
func (e *ProtocolError) Error() string {
	if e == nil || e.Text == "" {
		return "protocol: broken by the peer"
	}
	return "protocol: " + e.Text
}

func protocolf(format string, args ...any) error {
	return &ProtocolError{Text: fmt.Sprintf(format, args...)}
}

// LimitError says which limit on sizes a peer passed.
type LimitError struct {
	What     string
	Got, Max int64
}

// Error is total.
func (e *LimitError) Error() string {
	if e == nil {
		e = &LimitError{}
	}
	what := e.What
	if what == "" {
		what = "size"
	}
	return fmt.Sprintf("limit: %s: %d, at most %d", what, e.Got, e.Max)
}

// StallError says that the peer took no byte for a time.
type StallError struct {
	After time.Duration
}

// Error is total.
func (e *StallError) Error() string {
	if e == nil {
		e = &StallError{}
	}
	return fmt.Sprintf("stall: the peer took nothing for %v", e.After)
}

// InUseError says that an ipc path belongs to a living server, or is no socket of ours to replace.
type InUseError struct {
	Path, Why string
}

// Error is total.
func (e *InUseError) Error() string {
	if e == nil {
		e = &InUseError{}
	}
	return fmt.Sprintf("zmqio: listen: %s: in use: %s", e.Path, e.Why)
}
