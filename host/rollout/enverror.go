package rollout

import (
	"fmt"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/plugins/abi"
)

// envError maps a failure to what a guest learns of it: the one function that does. No host path is
// in it.
func envError(f *failure.Failure) *abi.EnvError {
	e := &abi.EnvError{Status: status(f), Source: string(f.Source), Kind: f.Kind, Message: f.Message}
	s := f.Server
	if s == nil {
		return e
	}
	if e.Status == abi.ConnectionLost { // its cause names sockets
		e.Message = fmt.Sprintf("env-server (generation %d): connection lost after %.1f s", s.Generation, s.UptimeS)
	}
	e.Server = &abi.ServerFacts{Generation: int64(s.Generation), UptimeS: s.UptimeS, Log: s.Log, Tail: s.Tail}
	if s.Code != nil {
		code := int64(*s.Code)
		e.Server.Code = &code
	}
	if s.Signal != 0 {
		e.Server.Signal = s.SignalName
	}
	return e
}

// status is total over the table of kinds; a kind that it does not name goes by its source.
func status(f *failure.Failure) abi.Status {
	switch string(f.Source) + "/" + f.Kind {
	case "server/exited":
		return abi.ServerExited
	case "server/connection_lost":
		return abi.ConnectionLost
	case "server/worker_lost":
		return abi.WorkerLost
	case "server/stalled":
		return abi.Stalled
	case "server/protocol":
		return abi.Protocol
	case "server/too_large":
		return abi.TooLarge
	}
	switch f.Source {
	case failure.Cancelled:
		return abi.Cancelled
	case failure.Server, failure.Model:
		return abi.PeerFailed
	case failure.Config:
		return abi.Invalid
	default:
		return abi.Internal
	}
}
