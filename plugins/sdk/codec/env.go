package codec

import "github.com/wevalr/wevalr/plugins/abi"

// WriteEnvRequest appends what env_start takes.
func WriteEnvRequest(w *Writer, q abi.EnvRequest) {
	f := w.begin()
	f.put(true, "task_data")
	w.AnyMap(q.TaskData)
	if f.put(len(q.Sampling) > 0, "sampling") {
		w.AnyMap(q.Sampling)
	}
}

// ReadEnvRequest reads what env_start takes.
func ReadEnvRequest(r *Reader) (q abi.EnvRequest) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "task_data":
			q.TaskData = r.AnyMap()
		case "sampling":
			q.Sampling = r.AnyMap()
		default:
			r.Skip()
		}
	}
	return q
}

// WriteEnvReply appends what env_take gives.
func WriteEnvReply(w *Writer, p abi.EnvReply) {
	f := w.begin()
	if f.put(p.Episode != nil, "ok") {
		WriteEpisode(w, *p.Episode)
	}
	if f.put(p.Err != nil, "err") {
		writeEnvError(w, p.Err)
	}
}

// ReadEnvReply reads what env_take gives.
func ReadEnvReply(r *Reader) (p abi.EnvReply) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "ok":
			if !r.Nil() {
				e := ReadEpisode(r)
				p.Episode = &e
			}
		case "err":
			if !r.Nil() {
				p.Err = readEnvError(r)
			}
		default:
			r.Skip()
		}
	}
	return p
}

func writeEnvError(w *Writer, e *abi.EnvError) {
	f := w.begin()
	f.put(true, "status")
	w.Int(int64(e.Status))
	f.put(true, "source")
	w.String(e.Source)
	f.put(true, "kind")
	w.String(e.Kind)
	f.put(true, "message")
	w.String(e.Message)
	if !f.put(e.Server != nil, "server") {
		return
	}
	s := e.Server
	f = w.begin()
	f.put(true, "generation")
	w.Int(s.Generation)
	if f.put(s.Code != nil, "code") {
		w.Int(*s.Code)
	}
	if f.put(s.Signal != "", "signal") {
		w.String(s.Signal)
	}
	f.put(true, "uptime_s")
	w.Float(s.UptimeS)
	if f.put(s.Log != "", "log") {
		w.String(s.Log)
	}
	if f.put(len(s.Tail) > 0, "tail") {
		w.Strings(s.Tail)
	}
}

func readEnvError(r *Reader) *abi.EnvError {
	e := &abi.EnvError{Status: abi.Internal}
	for range r.MapLen() {
		switch string(r.Key()) {
		case "status":
			e.Status = abi.Status(r.Int())
		case "source":
			e.Source = r.String()
		case "kind":
			e.Kind = r.String()
		case "message":
			e.Message = r.String()
		case "server":
			if !r.Nil() {
				e.Server = readServer(r)
			}
		default:
			r.Skip()
		}
	}
	return e
}

func readServer(r *Reader) *abi.ServerFacts {
	s := &abi.ServerFacts{}
	for range r.MapLen() {
		switch string(r.Key()) {
		case "generation":
			s.Generation = r.Int()
		case "code":
			s.Code = r.IntPtr()
		case "signal":
			s.Signal = r.String()
		case "uptime_s":
			s.UptimeS = r.Float()
		case "log":
			s.Log = r.String()
		case "tail":
			s.Tail = r.Strings()
		default:
			r.Skip()
		}
	}
	return s
}
