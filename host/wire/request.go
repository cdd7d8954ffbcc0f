package wire

import "fmt"

// RunRequest asks an env-server for one rollout.
type RunRequest struct {
	TaskData map[string]any
	Client   map[string]any
	Model    string
	Sampling map[string]any
	// Wevalr says which rollout it is; servers that do not know the key ignore it.
	Wevalr *Tag
}

// Tag names the rollout that a run belongs to. Seed is the rollout's own.
type Tag struct {
	Key        string
	Index, Try int
	Seed       int64
}

// Encode writes the run's payload.
//
// # Errors
//
// A value that no message can carry, with the path to it.
func (q *RunRequest) Encode() ([]byte, error) {
	n := 4
	if q.Wevalr != nil {
		n = 5
	}
	b := appendMapLen(make([]byte, 0, 1024), n)
	var err error
	for _, f := range []struct {
		name string
		v    any
	}{{"task_data", q.TaskData}, {"client", q.Client}, {"model", q.Model}, {"sampling", q.Sampling}} {
		if b, err = appendAny(appendStr(b, f.name), f.v); err != nil {
			return nil, fmt.Errorf("run request: %s: %w", f.name, err)
		}
	}
	if t := q.Wevalr; t != nil {
		b = appendMapLen(appendStr(b, "wevalr"), 4)
		b = appendStr(appendStr(b, "key"), validUTF8(t.Key))
		b = appendInt(appendStr(b, "index"), int64(t.Index))
		b = appendInt(appendStr(b, "try"), int64(t.Try))
		b = appendInt(appendStr(b, "seed"), t.Seed)
	}
	return b, nil
}

// DecodeRunRequest reads a run's payload. Unknown top-level keys are ignored, as the real server
// does.
//
// # Errors
//
// Their text is the reply's text, worded like the real server's: *[ValidationError] for a payload of
// the wrong shape, *[FormatError] for bytes that are no msgpack value.
func DecodeRunRequest(payload []byte) (*RunRequest, error) {
	if err := checkRequest(payload); err != nil {
		return nil, err
	}
	all := Value(payload)
	bad := &ValidationError{Model: "RunRequest"}
	if r := (reader{b: all}); !r.isMap() {
		bad.add("", "Input should be a valid dictionary or instance of RunRequest", "model_type", all)
		return nil, bad
	}
	var q RunRequest
	if v := bad.field(all, "task_data"); v != nil {
		if m, ok := v.Any().(map[string]any); ok {
			q.TaskData = m
		} else {
			bad.add("task_data", "Input should be a valid dictionary", "dict_type", v)
		}
	}
	if v := bad.field(all, "client"); v != nil {
		bad.client(v)
		q.Client = v.Map()
	}
	if v := bad.field(all, "model"); v != nil {
		q.Model = bad.str("model", v)
	}
	if v := bad.field(all, "sampling"); v != nil {
		m, ok := v.Any().(map[string]any)
		if !ok {
			bad.add("sampling", "Input should be a valid dictionary or instance of SamplingConfig", "model_type", v)
		}
		q.Sampling = m
	}
	if len(bad.Problems) > 0 {
		return nil, bad
	}
	q.Wevalr = tag(all.Get("wevalr"))
	return &q, nil
}

// tag reads what only wevalr sends; what is no tag is as good as none.
func tag(v Value) *Tag {
	r := reader{b: v}
	if len(v) == 0 || !r.isMap() {
		return nil
	}
	var t Tag
	for range r.mapLen() {
		switch string(r.key()) {
		case "key":
			t.Key = r.str()
		case "index":
			t.Index = int(r.i64())
		case "try":
			t.Try = int(r.i64())
		case "seed":
			t.Seed = r.i64()
		default:
			r.skip()
		}
	}
	if r.err != nil {
		return nil
	}
	return &t
}

// DecodeCancel reads a cancel's payload. Errors are those of [DecodeRunRequest].
func DecodeCancel(payload []byte) (id string, err error) {
	if err := checkRequest(payload); err != nil {
		return "", err
	}
	all := Value(payload)
	bad := &ValidationError{Model: "CancelRequest"}
	if r := (reader{b: all}); !r.isMap() {
		bad.add("", "Input should be a valid dictionary or instance of CancelRequest", "model_type", all)
		return "", bad
	}
	if v := bad.field(all, "request_id"); v != nil {
		id = bad.str("request_id", v)
	}
	if len(bad.Problems) > 0 {
		return "", bad
	}
	return id, nil
}
