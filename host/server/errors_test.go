package server

import (
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/wire"
)

// Every error says something on its zero value, and what kind of failure it is.
func TestErrors_Zero(t *testing.T) {
	for _, e := range []failure.Failer{
		&ExitedError{}, &ConnLostError{}, &NotReadyError{}, &StartError{}, &PeerError{}, &TooLargeError{},
		&WorkerLostError{}, &StalledError{}, &GaveUpError{},
	} {
		if e.Error() == "" {
			t.Errorf("%T says nothing", e)
		}
		if f := e.Failure(); f == nil || f.Source != failure.Server || !failure.Known(f.Source, f.Kind) {
			t.Errorf("%T: got failure %+v", e, f)
		}
	}
	odd := &NotReadyError{LastProbe: &wire.ProtocolError{Part: "reply"}}
	if want := "(last try: server speaks a newer protocol: wire: reply)"; !strings.Contains(odd.Failure().Message, want) {
		t.Errorf("got %q, want %q in it", odd.Failure().Message, want)
	}
	if (&UnresponsiveError{}).Error() == "" {
		t.Error("UnresponsiveError says nothing")
	}
}
