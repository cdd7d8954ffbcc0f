package codec

import "github.com/wevalr/wevalr/plugins/abi"

// ReadTask reads a task.
func ReadTask(r *Reader) (t abi.Task) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "key":
			t.Key = r.String()
		case "data":
			t.Data = r.AnyMap()
		case "target":
			t.Target = r.Any()
		case "choices":
			t.Choices = r.Strings()
		case "cluster":
			t.Cluster = r.String()
		case "group":
			t.Group = r.String()
		case "metadata":
			t.Metadata = r.AnyMap()
		default:
			r.Skip()
		}
	}
	return t
}

// WriteTask appends a task.
func WriteTask(w *Writer, t abi.Task) {
	f := w.begin()
	f.put(true, "key")
	w.String(t.Key)
	f.put(true, "data")
	w.AnyMap(t.Data)
	if f.put(t.Target != nil, "target") {
		w.Any(t.Target)
	}
	if f.put(len(t.Choices) > 0, "choices") {
		w.Strings(t.Choices)
	}
	if f.put(t.Cluster != "", "cluster") {
		w.String(t.Cluster)
	}
	if f.put(t.Group != "", "group") {
		w.String(t.Group)
	}
	if f.put(len(t.Metadata) > 0, "metadata") {
		w.AnyMap(t.Metadata)
	}
}

// ReadScore reads a score.
func ReadScore(r *Reader) (s abi.Score) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "name":
			s.Name = r.String()
		case "value":
			s.Value = r.FloatPtr()
		case "label":
			s.Label = r.String()
		case "explanation":
			s.Explanation = r.String()
		case "answer":
			s.Answer = r.String()
		case "metadata":
			s.Metadata = r.AnyMap()
		default:
			r.Skip()
		}
	}
	return s
}

// WriteScore appends a score.
func WriteScore(w *Writer, s abi.Score) {
	f := w.begin()
	if f.put(s.Name != "", "name") {
		w.String(s.Name)
	}
	f.put(true, "value")
	if s.Value == nil {
		w.Nil()
	} else {
		w.Float(*s.Value)
	}
	if f.put(s.Label != "", "label") {
		w.String(s.Label)
	}
	if f.put(s.Explanation != "", "explanation") {
		w.String(s.Explanation)
	}
	if f.put(s.Answer != "", "answer") {
		w.String(s.Answer)
	}
	if f.put(len(s.Metadata) > 0, "metadata") {
		w.AnyMap(s.Metadata)
	}
}

// ReadError reads the `err` of a response.
func ReadError(r *Reader) (e abi.Error) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "code":
			e.Code = r.String()
		case "message":
			e.Message = r.String()
		case "retryable":
			e.Retryable = r.Bool()
		case "data":
			e.Data = r.AnyMap()
		default:
			r.Skip()
		}
	}
	return e
}

// WriteError appends the `err` of a response.
func WriteError(w *Writer, e abi.Error) {
	f := w.begin()
	f.put(true, "code")
	w.String(e.Code)
	f.put(true, "message")
	w.String(e.Message)
	if f.put(e.Retryable, "retryable") {
		w.Bool(true)
	}
	if f.put(len(e.Data) > 0, "data") {
		w.AnyMap(e.Data)
	}
}
