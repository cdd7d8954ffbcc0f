package wire

import "strconv"

// Result is the answer to a run. Success false: the peer refused or broke, Error is its text (see
// [PeerFailure]) and there is no episode. Success true only says that an episode came back; how the
// run ended is [Episode.Outcome].
type Result struct {
	Success bool
	Error   string
	Episode *Episode
}

// summary is what the reply says of one trace.
type summary struct {
	id           string
	nodes, calls int64
}

// reply is a decoded reply payload.
type reply struct {
	success  *bool
	error    string
	head     *Episode
	traces   []summary
	episode  *Episode // two-frame dialect
	canceled bool
}

// DecodeRun adds deltas and reply payload up to the run's result. legacy says that the answer had
// two frames: the payload then holds the whole episode and there are no deltas.
//
// # Errors
//
// *[ProtocolError]: bytes that are no msgpack, a value of another type than the schema's, a delta
// for a trace that was never opened, a trace that the reply lists and no delta brought, or one whose
// nodes or calls are not as many as the reply says.
func DecodeRun(deltas [][]byte, payload []byte, legacy bool) (*Result, error) {
	var a assembly
	for i, d := range deltas {
		if err := a.apply("delta "+strconv.Itoa(i), d); err != nil {
			return nil, err
		}
	}
	rep, err := decodeReply(payload, a.data)
	if err != nil {
		return nil, err
	}
	if !*rep.success {
		return &Result{Error: rep.error}, nil
	}
	ep := rep.head
	if legacy {
		ep = rep.episode
	}
	switch {
	case ep == nil && legacy:
		return nil, &ProtocolError{Part: "reply", Path: "episode", Want: "an episode", Got: "none"}
	case ep == nil:
		return nil, &ProtocolError{Part: "reply", Path: "head", Want: "an episode", Got: "none"}
	case !legacy:
		if ep.Traces, err = a.finish(rep.traces); err != nil {
			return nil, err
		}
	}
	return &Result{Success: true, Episode: ep}, nil
}

// DecodePartial is what had arrived of a run that never ended, as far as it can be read: traces in
// the order they were opened, discarded ones left out. A delta that does not fit is passed over. It
// never fails, and it is for people to look at, never to score.
func DecodePartial(deltas [][]byte) []Trace {
	var a assembly
	for _, d := range deltas {
		_ = a.apply("delta", d)
	}
	out := make([]Trace, 0, len(a.order))
	for _, t := range a.order {
		if t != nil && t.ID != "" {
			out = append(out, *t)
		}
	}
	return out
}

func decodeReply(payload []byte, data Value) (*reply, error) {
	if err := check("reply", payload); err != nil {
		return nil, err
	}
	r := reader{b: payload, data: data}
	if !r.isMap() {
		r.fail(0, "a map with success")
	}
	var rep reply
	for range r.mapLen() {
		switch string(r.key()) {
		case "success":
			ok := r.bool()
			rep.success = &ok
		case "error":
			rep.error = r.str()
		case "head":
			if !r.null() {
				rep.head = &Episode{}
				rep.head.decode(&r)
			}
		case "episode":
			if !r.null() {
				rep.episode = &Episode{}
				rep.episode.decode(&r)
			}
		case "traces":
			rep.traces = list(&r, nil, (*summary).decode)
		case "cancelled":
			rep.canceled = r.bool()
		default:
			r.skip()
		}
	}
	if err := r.done("reply"); err != nil {
		return nil, err
	}
	if rep.success == nil {
		return nil, &ProtocolError{Part: "reply", Path: "success", Want: "a bool", Got: describe(payload)}
	}
	return &rep, nil
}

func (t *summary) decode(r *reader) {
	for range r.mapLen() {
		switch string(r.key()) {
		case "id":
			t.id = r.str()
		case "nodes":
			t.nodes = r.i64()
		case "calls":
			t.calls = r.i64()
		default:
			r.skip()
		}
	}
}

// ParseEpisode reads one line of traces.jsonl, ours or verifiers'.
//
// # Errors
//
// *[ProtocolError].
func ParseEpisode(line []byte) (*Episode, error) {
	b, err := fromJSON(make([]byte, 0, len(line)), line)
	if err != nil {
		return nil, &ProtocolError{Part: "episode", Err: err}
	}
	r := reader{b: b}
	if !r.isMap() {
		r.fail(0, "an episode")
	}
	var e Episode
	e.decode(&r)
	if err := r.done("episode"); err != nil {
		return nil, err
	}
	return &e, nil
}
