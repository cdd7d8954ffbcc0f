package envserver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/wevalr/wevalr/host/wire"
)

// taskType stands where verifiers writes the class name of a task.
const taskType = "WevalrTask"

// task is a row made ready: as it is recorded, and as it is asked.
type task struct {
	data     map[string]any // with verifiers' defaults
	hash     string
	messages []message
	records  []wire.Message // messages, as a trace holds them
}

// newTask validates a row. It takes over data, and changes it.
func newTask(data map[string]any) (*task, error) {
	bad := &wire.ValidationError{Model: "TaskData"}
	t := &task{data: data}
	prompt := t.readPrompt(bad)
	fillDefaults(data, bad)
	if err := refusal(bad); err != nil {
		return nil, err
	}
	t.messages = prompt
	if system, _ := data["system_prompt"].(string); system != "" {
		t.messages = append([]message{{role: "system", content: system}}, prompt...)
	}
	var err error
	if t.hash, err = taskHash(data); err != nil {
		bad.Add("task_data", err.Error(), "value_error", nil)
		return nil, bad
	}
	t.records, err = records(t.messages)
	return t, err
}

// readPrompt reads the prompt and puts it back in verifiers' shape.
func (t *task) readPrompt(bad *wire.ValidationError) []message {
	switch p := t.data["prompt"].(type) {
	case string:
		return []message{{role: "user", content: p}}
	case []any:
		out := make([]message, 0, len(p)+1)
		rows := make([]any, 0, len(p))
		for i, v := range p {
			m, err := parseMessage(v)
			if err != nil {
				bad.Add(fmt.Sprintf("prompt.%d", i), err.Error(), "value_error", v)
				continue
			}
			out = append(out, m)
			rows = append(rows, m.row())
		}
		if len(p) == 0 {
			bad.Add("prompt", "List should have at least 1 item", "too_short", p)
		}
		t.data["prompt"] = rows
		return out
	case nil:
		bad.Add("prompt", "Field required", "missing", nil)
	default:
		bad.Add("prompt", "Input should be a valid string or list of messages", "string_type", p)
	}
	return nil
}

// fillDefaults checks the fields that verifiers' TaskData types and adds those that it fills in, so
// that task and hash are what its own server would have recorded.
func fillDefaults(data map[string]any, bad *wire.ValidationError) {
	for _, key := range [...]string{"id", "name", "description", "system_prompt", "image", "workdir", "agent_user"} {
		v := data[key]
		if _, ok := v.(string); !ok && v != nil {
			bad.Add(key, "Input should be a valid string", "string_type", v)
		}
		data[key] = v
	}
	idx := data["idx"]
	switch idx.(type) {
	case nil, int64, uint64:
	default:
		bad.Add("idx", "Input should be a valid integer", "int_type", idx)
	}
	data["idx"] = idx
	for _, key := range [...]string{"skills", "network_allow", "network_block", "artifacts"} {
		switch v := data[key]; v.(type) {
		case []any:
		case nil:
			data[key] = []any{}
			if key == "network_allow" {
				data[key] = []any{"*"}
			}
		default:
			bad.Add(key, "Input should be a valid list", "list_type", v)
		}
	}
	if data["artifact_max_bytes"] == nil {
		data["artifact_max_bytes"] = int64(32 << 20)
	}
	fillNested(data, bad, "timeout", "setup", "agent", "finalize", "scoring")
	fillNested(data, bad, "resources", "cpu", "memory", "gpu", "disk")
}

func fillNested(data map[string]any, bad *wire.ValidationError, key string, fields ...string) {
	m, ok := data[key].(map[string]any)
	if !ok {
		if v := data[key]; v != nil {
			bad.Add(key, "Input should be a valid dictionary", "model_type", v)
		}
		m = make(map[string]any, len(fields))
		data[key] = m
	}
	for _, f := range fields {
		if _, ok := m[f]; !ok {
			m[f] = nil
		}
	}
}

// taskHash is verifiers' Task.hash: SHA-256 over the row in Python's JSON, without the model's own
// nil fields (those inside a row's free maps stay, as pydantic leaves them).
func taskHash(data map[string]any) (string, error) {
	plain := make(map[string]any, len(data))
	for k, v := range data {
		switch k {
		case "timeout", "resources":
			if m, ok := v.(map[string]any); ok {
				v = withoutNil(m)
			}
		case "prompt":
			if list, ok := v.([]any); ok {
				v = promptWithoutNil(list)
			}
		}
		if v != nil {
			plain[k] = v
		}
	}
	b, err := appendPyMap(make([]byte, 0, 1024), plain)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

func promptWithoutNil(list []any) []any {
	out := make([]any, len(list))
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			out[i] = v
			continue
		}
		m = withoutNil(m)
		if calls, ok := m["tool_calls"].([]any); ok {
			m["tool_calls"] = promptWithoutNil(calls)
		}
		out[i] = m
	}
	return out
}

func withoutNil(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if v != nil {
			out[k] = v
		}
	}
	return out
}
