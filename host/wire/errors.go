package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/scan"
)

// ProtocolError is a message that does not fit the schema: where it broke and what was seen there.
type ProtocolError struct {
	Part string // which message: "reply", "delta 3", "episode"
	Path string // where in it: nodes[2].message.content
	Want string // what the schema has there
	Got  string // what was seen instead
	Err  error  // where the bytes themselves are broken: *scan.Error
}

func (e *ProtocolError) Error() string {
	var s strings.Builder
	s.WriteString("wire")
	for _, p := range []string{e.Part, e.Path} {
		if p != "" {
			s.WriteString(": " + p)
		}
	}
	if e.Want != "" {
		s.WriteString(": want " + e.Want)
		if e.Got != "" {
			s.WriteString(", got " + e.Got)
		}
	}
	if e.Err != nil {
		s.WriteString(": " + e.Err.Error())
	}
	return s.String()
}

// Unwrap gives the cause in the bytes, if that is what it was.
func (e *ProtocolError) Unwrap() error { return e.Err }

// Newer is what a message of a form that is not known here most likely means.
const Newer = "server speaks a newer protocol: "

// Failure makes it server: protocol. Broken bytes are that of any protocol, all else is [Newer].
func (e *ProtocolError) Failure() *failure.Failure {
	text := e.Error()
	if !errors.As(e.Err, new(*scan.Error)) {
		text = Newer + text
	}
	return failure.New(failure.Server, "protocol", "%s", text)
}

// check scans one payload.
func check(part string, b []byte) error {
	err := scan.Check(b, scan.Limits{})
	if err == nil {
		return nil
	}
	e := &ProtocolError{Part: part, Err: err}
	if se := (*scan.Error)(nil); errors.As(err, &se) && len(b) <= 64 {
		e.Got = fmt.Sprintf("%d bytes %x", len(b), b)
		e.Want = "one msgpack value"
	}
	return e
}

// done turns the reader's mismatch, if any, into an error.
func (r *reader) done(part string) error {
	if r.err == nil {
		return nil
	}
	got := "nothing"
	if r.err.at < len(r.b) {
		got = describe(r.b[r.err.at:])
	}
	return &ProtocolError{Part: part, Path: pathTo(r.b, r.err.at), Want: r.err.want, Got: got}
}

// describe names a value for a person.
func describe(b []byte) string {
	r := reader{b: b}
	switch {
	case r.isMap():
		return fmt.Sprintf("a map of %d", r.mapLen())
	case r.isList():
		return fmt.Sprintf("a list of %d", r.listLen())
	}
	text := string(r.toJSON(nil, 0))
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}

// pathTo names the place of a byte offset: the keys and indices that lead there.
func pathTo(b []byte, at int) string {
	r := reader{b: b}
	var path strings.Builder
	for r.err == nil && r.i < at {
		isMap := r.isMap()
		if !isMap && !r.isList() {
			break
		}
		var n int
		if isMap {
			n = r.mapLen()
		} else {
			n = r.listLen()
		}
		found := false
		for i := range n {
			step := "[" + strconv.Itoa(i) + "]"
			if isMap {
				step = "." + string(r.key())
			}
			start := r.i
			r.skip()
			if at < r.i && at >= start {
				r.i = start
				path.WriteString(step)
				found = true
				break
			}
		}
		if !found {
			break
		}
	}
	return strings.TrimPrefix(path.String(), ".")
}
