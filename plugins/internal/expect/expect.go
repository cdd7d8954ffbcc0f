// Package expect finds what a scorer compares with: values at a path into a task.
//
// It is for the shipped scorers, so that `expected = "data.answer"` means the same in all of them. Functions
// are pure and safe for concurrent use; values belong to the task. A path that leads nowhere gives nothing,
// which the scorer reports as the task's error.
package expect

import (
	"strconv"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
)

// At is the value at a path: field names of the task and positions in lists, with dots between them. nil where
// there is none.
func At(t abi.Task, path string) any {
	var v any
	name, rest, deeper := strings.Cut(path, ".")
	switch name {
	case "target":
		v = t.Target
	case "data":
		v = t.Data
	case "metadata":
		v = t.Metadata
	case "key":
		v = t.Key
	case "cluster":
		v = t.Cluster
	case "group":
		v = t.Group
	case "choices":
		list := make([]any, len(t.Choices))
		for i, c := range t.Choices {
			list[i] = c
		}
		v = list
	}
	for deeper {
		name, rest, deeper = strings.Cut(rest, ".")
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// Texts are the text, or the texts of a list, at a path. Numbers and bools become text; what has none is left
// out.
func Texts(t abi.Task, path string) (out []string) {
	v := At(t, path)
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, e := range list {
		if s, ok := Text(e); ok {
			out = append(out, s)
		}
	}
	return out
}

// Text is a string, number or bool as text.
func Text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}
