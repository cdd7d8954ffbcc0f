package wire

import (
	"strings"

	"github.com/wevalr/wevalr/host/failure"
)

// EncodeHealth is the payload of a health request.
func EncodeHealth() []byte { return []byte{emptyMap} }

// DecodeHealth reads the answer to a health request: nil when it says success.
//
// # Errors
//
// *[ProtocolError] for what is no answer at all, else *[failure.Failure] with the peer's text.
func DecodeHealth(payload []byte) error {
	rep, err := decodeReply(payload, nil)
	if err != nil {
		return err
	}
	if !*rep.success {
		return PeerFailure(rep.error)
	}
	return nil
}

// EncodeCancel is the payload that cancels the run of that request id.
func EncodeCancel(id string) []byte {
	return appendStr(appendStr(appendMapLen(nil, 1), "request_id"), validUTF8(id))
}

// DecodeCancelReply reads the answer to a cancel: whether such a run was found and aborted.
func DecodeCancelReply(payload []byte) (cancelled bool, err error) {
	rep, err := decodeReply(payload, nil)
	if err != nil {
		return false, err
	}
	if !*rep.success {
		return false, PeerFailure(rep.error)
	}
	return rep.canceled, nil
}

// EncodeOK is a reply payload that says success, with more fields (cancelled of a cancel's reply).
// A field that cannot be encoded is a programmer's error and panics.
func EncodeOK(extra map[string]any) []byte {
	b := appendStr(appendMapLen(nil, 2+len(extra)), "success")
	b = append(appendStr(appendBool(b, true), "error"), 0xc0)
	fields := mustValue(extra)
	return append(b, fields[mapHead(len(extra)):]...)
}

func mapHead(n int) int { return len(appendMapLen(nil, n)) }

// EncodeFailure is a reply payload that says no, and why: "Type: text" as the real server has it.
func EncodeFailure(text string) []byte {
	b := appendStr(appendMapLen(nil, 2), "success")
	b = appendStr(appendBool(b, false), "error")
	return appendStr(b, validUTF8(text))
}

// EncodeRunReply is the payload that ends a run whose traces went out as deltas: the episode without
// its traces, and how many nodes and calls each has.
func EncodeRunReply(ep *Episode) ([]byte, error) {
	var s sink
	m := s.open()
	s.boolField("success", true)
	s.key("error")
	s.null()
	s.key("head")
	ep.encode(&s, false)
	s.key("traces")
	seq(&s, ep.Traces, func(t *Trace, s *sink) {
		m := s.open()
		s.strField("id", t.ID)
		s.intField("nodes", int64(len(t.Nodes)))
		s.intField("calls", int64(len(t.Calls)))
		s.close(m)
	})
	s.close(m)
	return s.b, nil
}

// PeerFailure is the failure that a peer's `success: false` text means: refused when the peer did
// not accept what it was sent, peer_error for anything else.
func PeerFailure(text string) *failure.Failure {
	kind := "peer_error"
	if strings.HasPrefix(text, "ValidationError:") {
		kind = "refused"
	}
	return failure.New(failure.Server, kind, "%s", clip(text))
}

// clip bounds a peer's text for a message; the whole text is in the episode and the server's log.
func clip(s string) string {
	const most = 2000
	s = validUTF8(s)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
