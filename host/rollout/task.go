package rollout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/wevalr/wevalr/plugins/abi"
)

// EncodeTask is a task's line in tasks.jsonl, without the newline: the bytes that the task's hash is
// taken of. A float is seen to be one: 1.0, not 1.
func EncodeTask(t *abi.Task) ([]byte, error) {
	out := *t
	out.Target = marked(t.Target)
	out.Data, _ = marked(t.Data).(map[string]any)
	out.Metadata, _ = marked(t.Metadata).(map[string]any)
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&out); err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Key, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// marked is v with whole floats written as floats. It changes nothing of v.
func marked(v any) any {
	switch v := v.(type) {
	case float64:
		switch {
		case v != math.Trunc(v) || math.IsInf(v, 0):
		case math.Abs(v) < 1e15:
			return json.Number(strconv.FormatFloat(v, 'f', 1, 64))
		default:
			return json.Number(strconv.FormatFloat(v, 'e', -1, 64))
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = marked(v[i])
		}
		return out
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = marked(v[k])
		}
		return out
	}
	return v
}

// DecodeTask reads such a line. A task's data goes to the env-server with the types that its plugin
// gave it: integers are integers, floats are floats.
func DecodeTask(line []byte) (*abi.Task, error) {
	var t abi.Task
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&t); err != nil {
		return nil, fmt.Errorf("task line: %w", err)
	}
	t.Target = plain(t.Target)
	plain(t.Data)
	plain(t.Metadata)
	return &t, nil
}

// plain replaces json.Number, in place, by int64 or uint64 where it is a whole number that fits, else
// by float64.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		return plainNumber(v.String())
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

func plainNumber(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return f
}
