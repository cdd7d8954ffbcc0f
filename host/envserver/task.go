package envserver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// taskType stands where verifiers writes the class name of a task.
const taskType = "WevalrTask"

// task is a row made ready: as it is recorded, and as it is asked.
type task struct {
	data     map[string]any // with verifiers' defaults
	hash     string
	messages []message
}

// newTask validates a row. It takes over data, and changes it.
func newTask(data map[string]any) (*task, error) {
	var bad invalid
	t := &task{data: data}
	prompt := t.readPrompt(&bad)
	fillDefaults(data, &bad)
	if err := bad.err("TaskData"); err != nil {
		return nil, err
	}
	t.messages = prompt
	if system, _ := data["system_prompt"].(string); system != "" {
		t.messages = append([]message{{role: "system", content: system}}, prompt...)
	}
	var err error
	if t.hash, err = taskHash(data); err != nil {
		bad.add("task_data", "value_error", "%v", err)
		return nil, bad.err("TaskData")
	}
	return t, nil
}

// readPrompt reads the prompt and puts it back in verifiers' shape.
func (t *task) readPrompt(bad *invalid) []message {
	switch p := t.data["prompt"].(type) {
	case string:
		return []message{{role: "user", content: p}}
	case []any:
		out := make([]message, 0, len(p)+1)
		records := make([]any, 0, len(p))
		for i, v := range p {
			m, err := parseMessage(v)
			if err != nil {
				bad.add(fmt.Sprintf("prompt.%d", i), "value_error", "%v", err)
				continue
			}
			out = append(out, m)
			records = append(records, m.record())
		}
		if len(p) == 0 {
			bad.add("prompt", "too_short", "List should have at least 1 message")
		}
		t.data["prompt"] = records
		return out
	case nil:
		bad.add("prompt", "missing", "Field required: wevalr's env-server asks one question of the model")
	default:
		bad.add("prompt", "string_type", "Input should be a string or a list of messages, got %s", pyType(p))
	}
	return nil
}

// fillDefaults checks the fields that verifiers' TaskData types and adds those that it fills in, so
// that task and hash are what its own server would have recorded.
func fillDefaults(data map[string]any, bad *invalid) {
	for _, key := range [...]string{"id", "name", "description", "system_prompt", "image", "workdir", "agent_user"} {
		v := data[key]
		if _, ok := v.(string); !ok && v != nil {
			bad.add(key, "string_type", "Input should be a valid string, got %s", pyType(v))
		}
		data[key] = v
	}
	idx := data["idx"]
	if k := pyType(idx); k != "int" && idx != nil {
		bad.add("idx", "int_type", "Input should be a valid integer, got %s", k)
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
			bad.add(key, "list_type", "Input should be a valid list, got %s", pyType(v))
		}
	}
	if data["artifact_max_bytes"] == nil {
		data["artifact_max_bytes"] = int64(32 << 20)
	}
	fillNested(data, bad, "timeout", "setup", "agent", "finalize", "scoring")
	fillNested(data, bad, "resources", "cpu", "memory", "gpu", "disk")
}

func fillNested(data map[string]any, bad *invalid, key string, fields ...string) {
	m, ok := data[key].(map[string]any)
	if !ok {
		if v := data[key]; v != nil {
			bad.add(key, "model_type", "Input should be a valid dictionary, got %s", pyType(v))
		}
		m = make(map[string]any, len(fields))
		data[key] = m
	}
	for _, f := range fields {
		m[f] = m[f]
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
