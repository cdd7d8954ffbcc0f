package sdk

import (
	"errors"
	"strconv"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Error is a failure that a plugin declares itself: the host reports it under the plugin's name with
// Code as its kind.
type Error struct {
	// Code is snake_case and stable; "" is "error".
	Code    string
	Message string
	// Retryable says that the same call may succeed another time.
	Retryable bool
	// Data goes into the run's records; values as msgpack has them.
	Data map[string]any
}

// NewError makes an Error that is not retryable and has no data.
func NewError(code, message string) *Error { return &Error{Code: code, Message: message} }

// Error is total: it works on nil and the zero value.
func (e *Error) Error() string {
	switch {
	case e == nil:
		return "no error"
	case e.Message != "":
		return e.Message
	case e.Code != "":
		return e.Code
	}
	return codeError
}

// Sentinels that env errors match with errors.Is.
var (
	// ErrCancelled matches calls that were cancelled: by the guest, or because the run ends.
	ErrCancelled = errors.New("cancelled")
	// ErrDeadline matches an await whose time ran out.
	ErrDeadline = errors.New("deadline passed")
	// ErrNoneOpen matches an await when no call is open.
	ErrNoneOpen = errors.New("no call is open")
)

// CallError is what every error of a call to the env-server has. It stands by itself for statuses
// without a type of their own; match those by Status or with [ErrCancelled] and [ErrDeadline].
type CallError struct {
	// Status is why, as the ABI numbers it.
	Status abi.Status
	// Source and Kind are the failure's, as the run's records have them; "" where the host refused.
	Source, Kind string
	Message      string
}

func (e CallError) Error() string {
	s := "env: " + e.Status.String()
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Is matches the sentinels.
func (e CallError) Is(target error) bool {
	return target == ErrCancelled && e.Status == abi.Cancelled || target == ErrDeadline && e.Status == abi.Deadline
}

func (e CallError) envelope() abi.Error {
	out := abi.Error{Code: e.Status.String()}
	if e.Source != "" {
		out.Data = map[string]any{"source": e.Source, "kind": e.Kind}
	}
	return out
}

// The errors that calls to the env-server end with, by cause.
type (
	// DeniedError says that it is not granted, or not in this operation.
	DeniedError struct{ CallError }
	// PeerError says that the env-server answered that the rollout failed.
	PeerError struct{ CallError }
	// WorkerLostError says that the env-server lives, but the worker of this call does not.
	WorkerLostError struct{ CallError }
	// ConnectionLostError says that the connection ended and the process did not.
	ConnectionLostError struct{ CallError }
	// StalledError says that nothing came for as long as the operator allows.
	StalledError struct{ CallError }
	// LimitError says that there are too many open handles, or too many bytes.
	LimitError struct{ CallError }
	// ProtocolError says that the env-server's answer could not be understood.
	ProtocolError struct{ CallError }
)

// ServerExitedError says that the env-server's process has ended. Every later call of this rollout ends so
// too.
type ServerExitedError struct {
	CallError
	Generation int64
	// Code is the exit code, -1 if a signal ended the process or the code is not known.
	Code   int
	Signal string
	Uptime time.Duration
	// Log is the server's log, relative to the run directory; Tail its last lines.
	Log  string
	Tail []string
}

func (e *ServerExitedError) Error() string {
	s := "env: the server exited with code " + strconv.Itoa(e.Code)
	if e.Signal != "" {
		s = "env: the server was ended by " + e.Signal
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Log != "" {
		s += "\nlog: " + e.Log
	}
	return s
}

func (e *ServerExitedError) envelope() abi.Error {
	out := e.CallError.envelope()
	server := map[string]any{"generation": e.Generation, "uptime_s": e.Uptime.Seconds()}
	if e.Signal != "" {
		server["signal"] = e.Signal
	} else if e.Code >= 0 {
		server["code"] = e.Code
	}
	if e.Log != "" {
		server["log"] = e.Log
	}
	if len(e.Tail) > 0 {
		server["tail"] = e.Tail
	}
	out.Data = map[string]any{"source": e.Source, "kind": e.Kind, "server": server}
	return out
}

// callError gives an env error its type.
func callError(e *abi.EnvError) error {
	base := CallError{Status: e.Status, Source: e.Source, Kind: e.Kind, Message: e.Message}
	switch e.Status {
	case abi.Denied:
		return &DeniedError{base}
	case abi.PeerFailed:
		return &PeerError{base}
	case abi.WorkerLost:
		return &WorkerLostError{base}
	case abi.ConnectionLost:
		return &ConnectionLostError{base}
	case abi.Stalled:
		return &StalledError{base}
	case abi.LimitReached:
		return &LimitError{base}
	case abi.Protocol:
		return &ProtocolError{base}
	case abi.ServerExited:
		x := &ServerExitedError{CallError: base, Code: -1}
		if s := e.Server; s != nil {
			x.Generation, x.Signal, x.Log, x.Tail = s.Generation, s.Signal, s.Log, s.Tail
			x.Uptime = time.Duration(s.UptimeS * float64(time.Second))
			if s.Code != nil {
				x.Code = int(*s.Code)
			}
		}
		return x
	default:
		return &base
	}
}
