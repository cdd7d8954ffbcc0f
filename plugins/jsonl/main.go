// Command jsonl is a plugin: any file with one JSON object a line becomes a task set.
//
// An object's `data` object is what the env-server gets; without one, the object without `target`,
// `choices`, `cluster`, `group`, `metadata` and the key. Blank lines are left out.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/json"
)

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{
		Init: p.init,
		Tasks: func(cursor string, limit int) ([]sdk.Task, string, error) {
			return sdk.LinePage(sdk.Dataset("dataset"), p.file, cursor, limit, p.task)
		},
	})
}

func main() {}

type plugin struct{ file, keyField, promptField string }

func (p *plugin) init(o *sdk.Options) error {
	p.file = o.String("file", "tasks.jsonl")
	p.keyField = o.String("key_field", "key")
	p.promptField = o.String("prompt_field", "prompt")
	return nil
}

func (p *plugin) task(l *sdk.Lines) (sdk.Task, bool, error) {
	line := bytes.TrimSpace(l.Bytes())
	if len(line) == 0 {
		return sdk.Task{}, false, nil
	}
	v, err := json.Parse(line)
	if err != nil {
		return sdk.Task{}, false, bad(l, err.Error())
	}
	row, ok := v.(map[string]any)
	if !ok {
		return sdk.Task{}, false, bad(l, "want an object")
	}
	t, what := p.fromRow(row, line)
	if what != "" {
		return sdk.Task{}, false, bad(l, what)
	}
	return t, true, nil
}

func bad(l *sdk.Lines, what string) error { return sdk.NewError("dataset", l.Where()+": "+what) }

// fromRow takes a row apart; what is not "" says why it cannot.
func (p *plugin) fromRow(row map[string]any, line []byte) (t sdk.Task, what string) {
	if t.Key, what = p.key(row, line); what != "" {
		return t, what
	}
	t.Target = row["target"]
	if t.Choices, what = texts(row["choices"]); what != "" {
		return t, "choices: " + what
	}
	var ok bool
	if t.Cluster, ok = text(row["cluster"]); !ok {
		return t, "cluster: want a string"
	}
	if t.Group, ok = text(row["group"]); !ok {
		return t, "group: want a string"
	}
	if m := row["metadata"]; m != nil {
		if t.Metadata, ok = m.(map[string]any); !ok {
			return t, "metadata: want an object"
		}
	}
	if t.Data, ok = row["data"].(map[string]any); !ok {
		for _, k := range []string{p.keyField, "target", "choices", "cluster", "group", "metadata"} {
			delete(row, k)
		}
		t.Data = row
	}
	if p.promptField != "prompt" {
		prompt, ok := t.Data[p.promptField]
		if !ok {
			return t, "no field " + p.promptField + " (option prompt_field)"
		}
		t.Data["prompt"] = prompt
	}
	return t, ""
}

// key is the row's own key, else the first 16 hex digits of the line's SHA-256.
func (p *plugin) key(row map[string]any, line []byte) (key, what string) {
	v := row[p.keyField]
	if v == nil {
		sum := sha256.Sum256(line)
		return hex.EncodeToString(sum[:8]), ""
	}
	key, ok := text(v)
	if !ok || !abi.ValidTaskKey(key) {
		return "", p.keyField + ": want a key of 1 to 200 characters A-Z a-z 0-9 . _ / : -, without \"..\""
	}
	return key, ""
}

// text gives strings and whole numbers as text; nil is "".
func text(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

func texts(v any) (out []string, what string) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, "want a list"
	}
	for _, e := range list {
		s, ok := text(e)
		if !ok || e == nil {
			return nil, "want strings"
		}
		out = append(out, s)
	}
	return out, ""
}
