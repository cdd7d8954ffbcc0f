package envserver

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// plain turns decoded numbers into what the wire's decoder gives.
func plain(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			f, err := v.Float64()
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if n, err := v.Int64(); err == nil {
			return n
		}
		var u uint64
		if err := json.Unmarshal([]byte(v), &u); err != nil {
			t.Fatal(err)
		}
		return u
	case []any:
		for i := range v {
			v[i] = plain(t, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(t, v[k])
		}
	}
	return v
}

// TestNewTask_LikeVerifiers compares with rows that verifiers 0.4.0's WireTaskData dumped and
// hashed.
func TestNewTask_LikeVerifiers(t *testing.T) {
	b, err := os.ReadFile("testdata/task_hash.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Row, Data map[string]any
		Hash      string
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&rows); err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		got, err := newTask(plain(t, row.Row).(map[string]any))
		if err != nil {
			t.Errorf("row %d: %v", i, err)
			continue
		}
		if got.hash != row.Hash {
			t.Errorf("row %d: hash: got %s, want %s", i, got.hash, row.Hash)
		}
		if want := plain(t, row.Data); !reflect.DeepEqual(any(got.data), want) {
			t.Errorf("row %d: data:\ngot  %v\nwant %v", i, got.data, want)
		}
	}
}

func TestNewTask_Invalid(t *testing.T) {
	for name, c := range map[string]struct {
		row  map[string]any
		want string
	}{
		"no prompt":      {map[string]any{}, "ValidationError: 1 validation error for TaskData\nprompt\n  Field required"},
		"number":         {map[string]any{"prompt": int64(3)}, "string or list of messages"},
		"empty list":     {map[string]any{"prompt": []any{}}, "at least 1"},
		"no role":        {map[string]any{"prompt": []any{map[string]any{"content": "x"}}}, "prompt.0\n  role should be"},
		"no content":     {map[string]any{"prompt": []any{map[string]any{"role": "user"}}}, "content is missing"},
		"audio":          {map[string]any{"prompt": []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "audio"}}}}}, "content.0 should be"},
		"tool, no id":    {map[string]any{"prompt": []any{map[string]any{"role": "tool", "content": "x"}}}, "tool_call_id"},
		"id is a number": {map[string]any{"prompt": "x", "id": int64(1)}, "id\n  Input should be a valid string [type=string_type, input_value=1, input_type=int]"},
		"two at once":    {map[string]any{"prompt": true, "timeout": "soon"}, "2 validation errors"},
		"bytes":          {map[string]any{"prompt": "x", "blob": []byte("x")}, "not JSON"},
	} {
		_, err := newTask(c.row)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want …%s…", name, err, c.want)
		}
	}
}
