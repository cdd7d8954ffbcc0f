package codec

import "github.com/wevalr/wevalr/plugins/abi"

// WriteInitResponse appends the response of op 1.
func WriteInitResponse(w *Writer, p abi.InitResponse) {
	f := w.begin()
	if f.put(p.Tasks != nil, "tasks") {
		w.Int(*p.Tasks)
	}
}

// ReadInitResponse reads the response of op 1.
func ReadInitResponse(r *Reader) (p abi.InitResponse) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "tasks":
			p.Tasks = r.IntPtr()
		default:
			r.Skip()
		}
	}
	return p
}

// WriteTasksResponse appends the response of op 2.
func WriteTasksResponse(w *Writer, p abi.TasksResponse) {
	f := w.begin()
	f.put(true, "tasks")
	writeList(w, p.Tasks, WriteTask)
	if f.put(p.Next != "", "next") {
		w.String(p.Next)
	}
}

// ReadTasksResponse reads the response of op 2.
func ReadTasksResponse(r *Reader) (p abi.TasksResponse) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "tasks":
			p.Tasks = list(r, ReadTask)
		case "next":
			p.Next = r.String()
		default:
			r.Skip()
		}
	}
	return p
}

// WriteRolloutResponse appends the response of op 3.
func WriteRolloutResponse(w *Writer, p abi.RolloutResponse) {
	f := w.begin()
	f.put(true, "episodes")
	writeList(w, p.Episodes, (*Writer).Int)
	f.put(true, "selected")
	w.Int(p.Selected)
	if f.put(len(p.Scores) > 0, "scores") {
		writeList(w, p.Scores, WriteScore)
	}
}

// ReadRolloutResponse reads the response of op 3.
func ReadRolloutResponse(r *Reader) (p abi.RolloutResponse) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "episodes":
			p.Episodes = list(r, (*Reader).Int)
		case "selected":
			p.Selected = r.Int()
		case "scores":
			p.Scores = list(r, ReadScore)
		default:
			r.Skip()
		}
	}
	return p
}

// WriteScoreResponse appends the response of ops 4 and 5.
func WriteScoreResponse(w *Writer, p abi.ScoreResponse) {
	w.Map(1)
	w.String("scores")
	writeList(w, p.Scores, WriteScore)
}

// ReadScoreResponse reads the response of ops 4 and 5.
func ReadScoreResponse(r *Reader) (p abi.ScoreResponse) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "scores":
			p.Scores = list(r, ReadScore)
		default:
			r.Skip()
		}
	}
	return p
}
