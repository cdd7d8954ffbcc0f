package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// plain brings a decoded or given value to one of: map[string]any, []any, string, int64, float64,
// bool, time.Time. Anything else stays as it is and is refused by its reader.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return plainTable(v)
	case []map[string]any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plain(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plain(x)
		}
		return out
	case []string:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = x
		}
		return out
	case int:
		return int64(v)
	}
	return v
}

func plainTable(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, x := range m {
		out[k] = plain(x)
	}
	return out
}

// source is the document as a tree, with the place of each of its keys.
type source struct {
	file  string
	tree  map[string]any
	lines map[string]int    // key path → line of the file
	from  map[string]string // key path → From of an override
}

// at returns the place of a key: an override, or the file's line of it or of the nearest table
// around it.
func (s *source) at(path toml.Key) (from string, line int) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		name := path.String()
		if f, ok := s.from[name]; ok {
			return f, 0
		}
		if n, ok := s.lines[name]; ok {
			return "", n
		}
	}
	return "", 1
}

// set puts an override's value into the tree.
func (s *source) set(o Override) error {
	key, rest := splitKey(o.Key)
	if len(key) == 0 || rest != "" {
		return fmt.Errorf("malformed key %q", o.Key)
	}
	var cur any = s.tree
	var path toml.Key
	for i, part := range key {
		last := i == len(key)-1
		switch c := cur.(type) {
		case map[string]any:
			path = child(path, part)
			if last {
				c[part] = plain(o.Value)
				break
			}
			if _, ok := c[part]; !ok {
				if i == 0 && (part == "plugin" || part == "score") {
					return fmt.Errorf("there is no [[%s]] to change", part)
				}
				c[part] = map[string]any{}
			}
			cur = c[part]
		case []any:
			n := element(c, part)
			if n < 0 {
				return fmt.Errorf("no [[%s]] is named %q; those that exist: %s", path, part, elements(c))
			}
			path = child(path, strconv.Itoa(n))
			if last {
				c[n] = plain(o.Value)
				break
			}
			cur = c[n]
		default:
			return fmt.Errorf("%s is %s, not a table", path, kindOf(cur))
		}
	}
	s.claim(path, plain(o.Value), o.From)
	return nil
}

// element finds an array's table by its name, else by its index; −1: neither.
func element(list []any, part string) int {
	for i, x := range list {
		if m, ok := x.(map[string]any); ok && m["name"] == part {
			return i
		}
	}
	if n, err := strconv.Atoi(part); err == nil && n >= 0 && n < len(list) {
		return n
	}
	return -1
}

// elements lists what element would find.
func elements(list []any) string {
	names := make([]string, len(list))
	for i, x := range list {
		names[i] = strconv.Itoa(i)
		if m, ok := x.(map[string]any); ok {
			if name, ok := m["name"].(string); ok {
				names[i] = name
			}
		}
	}
	return strings.Join(names, ", ")
}

// claim notes that the value at path, with all that is in it, came from an override.
func (s *source) claim(path toml.Key, v any, from string) {
	s.from[path.String()] = from
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			s.claim(child(path, k), x, from)
		}
	case []any:
		for i, x := range v {
			s.claim(child(path, strconv.Itoa(i)), x, from)
		}
	}
}

// kindOf names a value's type as TOML calls it.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	case time.Time:
		return "a date"
	}
	return fmt.Sprintf("a %T", v)
}
