package star

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/wevalr/wevalr/plugins/abi"
)

// scoreKeys are what a dict with the key "value" may have.
func scoreKeys() []string {
	return []string{"value", "label", "explanation", "answer", "metadata", "name"}
}

// scores reads what a scoring function gave. An error's text says what was wrong with it.
func scores(v starlark.Value) ([]abi.Score, error) {
	d, ok := v.(*starlark.Dict)
	if !ok {
		s, err := plainScore(v)
		return []abi.Score{s}, err
	}
	if _, one, _ := d.Get(starlark.String("value")); one {
		s, err := dictScore(d)
		return []abi.Score{s}, err
	}
	if d.Len() == 0 {
		return nil, fmt.Errorf("an empty dict: want at least one score (None for a skipped one)")
	}
	var out []abi.Score
	for _, kv := range d.Items() {
		name, ok := starlark.AsString(kv[0])
		if !ok || name == "" {
			return nil, fmt.Errorf("score name %s: want a string", cut(kv[0].String()))
		}
		var s abi.Score
		var err error
		if inner, ok := kv[1].(*starlark.Dict); ok {
			s, err = dictScore(inner)
		} else {
			s, err = plainScore(kv[1])
		}
		if err != nil {
			return nil, fmt.Errorf("score %s: %w", cut(name), err)
		}
		s.Name = name
		out = append(out, s)
	}
	return out, nil
}

func plainScore(v starlark.Value) (s abi.Score, err error) {
	switch x := v.(type) {
	case starlark.NoneType:
		return s, nil
	case starlark.Bool:
		f := 0.0
		if x {
			f = 1
		}
		s.Value = &f
		return s, nil
	}
	f, ok := starlark.AsFloat(v)
	if !ok {
		return s, fmt.Errorf("%s %s: want True, False, a number, None or a dict", v.Type(), cut(v.String()))
	}
	s.Value = &f
	return s, nil
}

func dictScore(d *starlark.Dict) (s abi.Score, err error) {
	for _, kv := range d.Items() {
		k, _ := starlark.AsString(kv[0])
		if !slices.Contains(scoreKeys(), k) {
			return s, fmt.Errorf("key %s of a score is unknown, there are: %v", cut(kv[0].String()), scoreKeys())
		}
		switch k {
		case "value":
			p, err := plainScore(kv[1])
			if err != nil {
				return s, fmt.Errorf("value: %w", err)
			}
			s.Value = p.Value
		case "metadata":
			m, err := fromStarlark(kv[1], 0)
			if err != nil {
				return s, fmt.Errorf("metadata: %w", err)
			}
			if s.Metadata, _ = m.(map[string]any); s.Metadata == nil && m != nil {
				return s, fmt.Errorf("metadata: %s, want a dict", kv[1].Type())
			}
		default:
			*map[string]*string{"label": &s.Label, "explanation": &s.Explanation, "answer": &s.Answer, "name": &s.Name}[k] = plainText(kv[1])
		}
	}
	if _, there, _ := d.Get(starlark.String("value")); !there {
		return s, fmt.Errorf("a dict without value")
	}
	return s, nil
}

// plainText is a text as it is, None as "", anything else as the script would print it.
func plainText(v starlark.Value) string {
	if v == starlark.None {
		return ""
	}
	if s, ok := starlark.AsString(v); ok {
		return s
	}
	return v.String()
}

// task reads one of the dicts that tasks() gave.
func task(v starlark.Value) (t abi.Task, err error) {
	p, err := fromStarlark(v, 0)
	if err != nil {
		return t, err
	}
	m, ok := p.(map[string]any)
	if !ok {
		return t, fmt.Errorf("%s, want a dict", v.Type())
	}
	for k, e := range m {
		ok := true
		switch k {
		case "key":
			t.Key, ok = e.(string)
		case "data":
			t.Data, ok = e.(map[string]any)
		case "target":
			t.Target = e
		case "choices":
			var list []any
			if list, ok = e.([]any); ok {
				for _, c := range list {
					s, isText := c.(string)
					ok = ok && isText
					t.Choices = append(t.Choices, s)
				}
			}
		case "cluster":
			t.Cluster, ok = e.(string)
		case "group":
			t.Group, ok = e.(string)
		case "metadata":
			t.Metadata, ok = e.(map[string]any)
		default:
			return t, fmt.Errorf("unknown key %q, there are: key, data, target, choices, cluster, group, metadata", cut(k))
		}
		if !ok && e != nil {
			return t, fmt.Errorf("%s has the wrong type", k)
		}
	}
	if !abi.ValidTaskKey(t.Key) {
		return t, fmt.Errorf("key %q: want 1 to %d of [A-Za-z0-9._/:-], no two dots in a row", cut(t.Key), abi.MaxTaskKey)
	}
	if t.Data == nil {
		return t, fmt.Errorf("data is missing: a dict, such as {\"prompt\": …}")
	}
	return t, nil
}
