package envserver

import (
	"context"
	"fmt"

	"github.com/wevalr/wevalr/host/wire"
)

// call is one model call: what is asked, of whom, for which rollout.
type call struct {
	model    string
	messages []message
	sampling map[string]any
	client   endpoint
	tag      *wire.Tag // nil: the peer is not wevalr
	traceID  string    // sent as X-Session-ID
	sign     func()    // called while the call waits and its endpoint is at work; nil: nobody asks
}

// completion is what a model answered. Nothing in it is secret any more.
type completion struct {
	message message
	finish  string // stop, length, tool_calls; "" when the provider said something else
	raw     string // what it said then
	refused string // "refusal" or "content_filter": an answer, not an error
	usage   *wire.CallUsage
}

// model answers calls; complete is safe for concurrent use.
//
// The error is a *callError, or the cause of ctx's end. tries counts from 1 and is right on error too.
type model interface {
	complete(ctx context.Context, c *call) (done completion, tries int, err error)
}

// callError is a failed model call: an error of the rollout, in verifiers' shape.
type callError struct {
	status int // HTTP, or what stands for it: 502 malformed, 503 unreachable, 504 timeout
	msg    string
}

func (e *callError) Error() string {
	if e == nil || e.msg == "" {
		return "model call: no answer"
	}
	return e.msg
}

func failCall(status int, format string, args ...any) *callError {
	return &callError{status: status, msg: fmt.Sprintf(format, args...)}
}
