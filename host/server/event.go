package server

import "time"

// Event is a point in the life of a server, for the journal and the display.
type Event struct {
	At         time.Time
	Kind       string // one of the Event constants
	Instance   int
	Generation int
	PID        int
	Log        string        // relative to the run directory
	Err        error         // how or why; nil for EventReady
	Delay      time.Duration // of EventBackingOff: until the next start
}

// The kinds of events. There is none of a generation after its EventExited or EventNotReady.
const (
	EventReady        = "ready"
	EventExited       = "exited"        // Err says how, our own stop included
	EventNotReady     = "not_ready"     // a generation that never answered
	EventWorkerExited = "worker_exited" // Err is a *WorkerLostError, whatever follows from it
	EventUnresponsive = "unresponsive"  // a hint: health is not answered, the process lives
	EventBackingOff   = "backing_off"   // on_exit = "restart": Generation is the one to come
	EventGaveUp       = "gave_up"       // Err is a *GaveUpError
)

// emit tells the host, if it wants to know.
func (s *Server) emit(kind string, err error) {
	if s.spec.Events == nil {
		return
	}
	s.spec.Events(Event{
		At: time.Now(), Kind: kind, Instance: s.spec.Instance, Generation: s.spec.Generation,
		PID: s.PID(), Log: s.spec.LogRel, Err: err,
	})
}
