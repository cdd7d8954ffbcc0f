package codec

import "github.com/wevalr/wevalr/plugins/abi"

// ReadInit reads the request of op 1.
func ReadInit(r *Reader) (q abi.InitRequest) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "options":
			q.Options = r.AnyMap()
		case "host":
			q.Host = readHost(r)
		default:
			r.Skip()
		}
	}
	return q
}

func readHost(r *Reader) (h abi.HostInfo) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "name":
			h.Name = r.String()
		case "version":
			h.Version = r.String()
		case "abi_major":
			h.ABIMajor = int(r.Int())
		case "abi_minor":
			h.ABIMinor = int(r.Int())
		default:
			r.Skip()
		}
	}
	return h
}

// WriteInit appends the request of op 1.
func WriteInit(w *Writer, q abi.InitRequest) {
	w.Map(2)
	w.String("options")
	w.AnyMap(q.Options)
	w.String("host")
	w.Map(4)
	w.String("name")
	w.String(q.Host.Name)
	w.String("version")
	w.String(q.Host.Version)
	w.String("abi_major")
	w.Int(int64(q.Host.ABIMajor))
	w.String("abi_minor")
	w.Int(int64(q.Host.ABIMinor))
}

// ReadTasks reads the request of op 2.
func ReadTasks(r *Reader) (q abi.TasksRequest) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "cursor":
			q.Cursor = r.String()
		case "limit":
			q.Limit = r.Int()
		default:
			r.Skip()
		}
	}
	return q
}

// WriteTasks appends the request of op 2.
func WriteTasks(w *Writer, q abi.TasksRequest) {
	w.Map(2)
	w.String("cursor")
	w.String(q.Cursor)
	w.String("limit")
	w.Int(q.Limit)
}

// ReadRollout reads the request of op 3.
func ReadRollout(r *Reader) (q abi.RolloutRequest) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "task":
			q.Task = ReadTask(r)
		case "index":
			q.Index = r.Int()
		case "seed":
			q.Seed = r.Int()
		default:
			r.Skip()
		}
	}
	return q
}

// WriteRollout appends the request of op 3.
func WriteRollout(w *Writer, q abi.RolloutRequest) {
	w.Map(3)
	w.String("task")
	WriteTask(w, q.Task)
	w.String("index")
	w.Int(q.Index)
	w.String("seed")
	w.Int(q.Seed)
}

// ReadScoreRequest reads the request of op 4 or 5: a single episode becomes a list of one.
func ReadScoreRequest(r *Reader) (q abi.ScoreGroupRequest) {
	for range r.MapLen() {
		switch string(r.Key()) {
		case "scorer":
			q.Scorer = r.String()
		case "task":
			q.Task = ReadTask(r)
		case "episode":
			q.Episodes = append(q.Episodes, ReadEpisode(r))
		case "episodes":
			q.Episodes = list(r, ReadEpisode)
		case "seed":
			q.Seed = r.Int()
		default:
			r.Skip()
		}
	}
	return q
}

// WriteScoreRequest appends the request of op 4.
func WriteScoreRequest(w *Writer, q abi.ScoreRequest) {
	w.Map(4)
	w.String("scorer")
	w.String(q.Scorer)
	w.String("task")
	WriteTask(w, q.Task)
	w.String("episode")
	WriteEpisode(w, q.Episode)
	w.String("seed")
	w.Int(q.Seed)
}

// WriteScoreGroupRequest appends the request of op 5.
func WriteScoreGroupRequest(w *Writer, q abi.ScoreGroupRequest) {
	w.Map(4)
	w.String("scorer")
	w.String(q.Scorer)
	w.String("task")
	WriteTask(w, q.Task)
	w.String("episodes")
	writeList(w, q.Episodes, WriteEpisode)
	w.String("seed")
	w.Int(q.Seed)
}
