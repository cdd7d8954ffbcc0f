package wire

import "fmt"

// assembly is the growing picture of one run: its traces, in the order they were opened.
type assembly struct {
	order []*Trace // nil: discarded
	at    map[string]int
	data  Value // the last task data, for sharing
}

// find is the trace of that id, or nil.
func (a *assembly) find(id []byte) *Trace {
	if i, ok := a.at[string(id)]; ok {
		return a.order[i]
	}
	return nil
}

// apply takes one delta. Its parts stand in no order that matters: links and repairs name nodes by
// index, and the preview is set last.
func (a *assembly) apply(part string, b []byte) error {
	if err := check(part, b); err != nil {
		return err
	}
	id := Value(b).Get("trace")
	idr := reader{b: id}
	if !idr.isStr() {
		return &ProtocolError{Part: part, Path: "trace", Want: "a trace's id", Got: describe(b)}
	}
	name := idr.bytes("a string")
	t := a.find(name)
	known := t != nil
	if !known {
		t = &Trace{}
	}
	d := deltaReader{reader: reader{b: b, data: a.data}, t: t, known: known}
	d.read()
	if d.err == nil && !known && !d.opened && !d.discard {
		return &ProtocolError{Part: part, Path: "open", Want: "a trace that was opened", Got: fmt.Sprintf("%.64q", name)}
	}
	if err := d.done(part); err != nil {
		return err
	}
	a.data = d.data
	switch {
	case d.discard && known:
		a.order[a.at[string(name)]] = nil
		delete(a.at, string(name))
	case !d.discard && !known:
		if a.at == nil {
			a.at = make(map[string]int, 1)
		}
		a.at[string(name)] = len(a.order)
		a.order = append(a.order, t)
	}
	return d.bad(part)
}

// deltaReader applies one delta to its trace.
type deltaReader struct {
	reader
	t       *Trace
	known   bool
	opened  bool
	discard bool

	links, repairs Value
	problem        *ProtocolError
}

func (d *deltaReader) read() {
	r, t := &d.reader, d.t
	var nodes, preview bool
	var pending []Message
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "trace":
			r.skip()
		case "discard":
			d.discard = r.bool()
		case "open":
			if d.known { // the real client ignores it as well
				r.skip()
				continue
			}
			d.opened = true
			t.decode(r)
		case "set":
			for range r.mapLen() {
				t.field(r, r.key())
			}
		case "links":
			d.links = r.value()
		case "routing_repairs":
			d.repairs = r.value()
		case "nodes":
			nodes = true
			t.field(r, k)
		case "calls", "errors", "extra_usage", "request_rewrites", "response_rewrites":
			t.field(r, k)
		case "pending":
			preview = true
			pending = list(r, nil, (*Message).decode)
		default:
			r.skip()
		}
	}
	if nodes || preview {
		t.Pending = pending
	}
	d.indexed("links", d.links, func(n *Node, r *reader) error {
		n.SemanticParents = r.values(n.SemanticParents)
		return nil
	})
	d.indexed("routing_repairs", d.repairs, func(n *Node, r *reader) (err error) {
		n.RoutedExperts, err = repair(n.RoutedExperts, r.value())
		return err
	})
}

// indexed walks a map from node index to what is done to that node.
func (d *deltaReader) indexed(name string, v Value, do func(*Node, *reader) error) {
	if v.IsNil() || d.err != nil || d.discard {
		return
	}
	r := reader{b: v}
	for range r.mapLen() {
		var i int64
		if r.isStr() { // a map that went through JSON
			if _, err := fmt.Sscan(string(r.bytes("an index")), &i); err != nil {
				i = -1
			}
		} else {
			i = r.i64()
		}
		if i < 0 || i >= int64(len(d.t.Nodes)) {
			d.problem = &ProtocolError{Path: name, Want: fmt.Sprintf("a node below %d", len(d.t.Nodes)), Got: fmt.Sprint(i)}
			return
		}
		if err := do(&d.t.Nodes[i], &r); err != nil {
			d.problem = &ProtocolError{Path: fmt.Sprintf("%s[%d]", name, i), Err: err}
			return
		}
	}
	if err := r.done(""); err != nil {
		d.problem = err.(*ProtocolError) //nolint:errcheck,errorlint // done gives nothing else
		d.problem.Path = name + "." + d.problem.Path
	}
}

// bad is what was wrong with links and repairs.
func (d *deltaReader) bad(part string) error {
	if d.problem == nil {
		return nil
	}
	d.problem.Part = part
	return d.problem
}

// finish gives the traces in the reply's order, each as large as the reply says.
func (a *assembly) finish(sums []summary) ([]Trace, error) {
	out := make([]Trace, 0, len(sums))
	for i, s := range sums {
		at := fmt.Sprintf("traces[%d]", i)
		t := a.find([]byte(s.id))
		if t == nil {
			return nil, &ProtocolError{Part: "reply", Path: at, Want: fmt.Sprintf("a trace that deltas brought (%d did)", len(a.at)), Got: fmt.Sprintf("%.64q", s.id)}
		}
		if int64(len(t.Nodes)) != s.nodes || int64(len(t.Calls)) != s.calls {
			return nil, &ProtocolError{
				Part: "reply", Path: at,
				Want: fmt.Sprintf("%d nodes and %d calls", s.nodes, s.calls),
				Got:  fmt.Sprintf("%d and %d from the deltas", len(t.Nodes), len(t.Calls)),
			}
		}
		t.Pending = nil
		out = append(out, *t)
	}
	return out, nil
}
