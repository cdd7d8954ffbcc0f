package server

import (
	"testing"

	"github.com/wevalr/wevalr/host/failure"
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
	if (&UnresponsiveError{}).Error() == "" {
		t.Error("UnresponsiveError says nothing")
	}
}
