package wire

// Delta is what an env-server sends of a run while it goes on: the part of one trace that is new.
type Delta struct {
	Trace string // the trace's id
	// Discard drops the trace (an attempt that is tried again); the rest is then left out.
	Discard bool
	// Open starts the trace: version, id, verifiers and task are sent.
	Open *Trace
	// What is appended.
	Nodes  []Node
	Calls  []ModelCall
	Errors []Error
	// Set overwrites the fields of that state which Fields names; no Fields means all fifteen.
	Set    *Trace
	Fields []string
	// Pending previews the request in flight; nil: not sent.
	Pending []Message
}

// Encode writes the delta's payload.
func (d Delta) Encode() []byte {
	var s sink
	m := s.open()
	s.strField("trace", d.Trace)
	if d.Discard {
		s.boolField("discard", true)
		s.close(m)
		return s.b
	}
	if d.Open != nil {
		s.key("open")
		open := s.open()
		d.Open.header(&s)
		s.close(open)
	}
	if len(d.Nodes) > 0 {
		s.key("nodes")
		seq(&s, d.Nodes, (*Node).encode)
	}
	if len(d.Calls) > 0 {
		s.key("calls")
		seq(&s, d.Calls, (*ModelCall).encode)
	}
	if len(d.Errors) > 0 {
		s.key("errors")
		seq(&s, d.Errors, (*Error).encode)
	}
	if d.Set != nil {
		names := d.Fields
		if len(names) == 0 {
			names = stateFields()
		}
		s.key("set")
		set := s.open()
		for _, name := range names {
			d.Set.state(&s, name)
		}
		s.close(set)
	}
	if d.Pending != nil {
		s.key("pending")
		seq(&s, d.Pending, (*Message).encode)
	}
	s.close(m)
	return s.b
}
