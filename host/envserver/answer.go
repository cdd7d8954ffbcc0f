package envserver

import (
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// Answer answers what any env-server answers alike, whatever its runs do: health, and cancel of a run of
// the same server. For any other method it returns nil, nil.
//
// # Errors
//
// A cancel that cannot be read; the reply, which is not nil, says so too.
func Answer(req *zmqio.Request) (reply []byte, err error) {
	switch req.Method {
	case "health":
		return wire.EncodeOK(nil), nil
	case "cancel":
		id, err := wire.DecodeCancel(req.Payload)
		if err != nil {
			return wire.EncodeFailure(err.Error()), err
		}
		return req.CancelRun(id, func(cancelled bool) []byte {
			return wire.EncodeOK(map[string]any{"cancelled": cancelled})
		}), nil
	}
	return nil, nil
}
