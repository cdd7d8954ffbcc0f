package rollout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
)

// EncodeTask is a task's line in tasks.jsonl, without the newline: the bytes that the task's hash is
// taken of.
func EncodeTask(t *abi.Task) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Key, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// DecodeTask reads such a line. Integers stay integers: a task's data goes to the env-server with
// the types that its plugin gave it.
func DecodeTask(line []byte) (*abi.Task, error) {
	var t abi.Task
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&t); err != nil {
		return nil, fmt.Errorf("task line: %w", err)
	}
	t.Target = plain(t.Target)
	for k, v := range t.Data {
		t.Data[k] = plain(v)
	}
	for k, v := range t.Metadata {
		t.Metadata[k] = plain(v)
	}
	return &t, nil
}

// plain replaces json.Number by int64 where it is one, else float64.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			if n, err := v.Int64(); err == nil {
				return n
			}
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
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
