package config

import (
	"reflect"
	"strconv"
	"time"
)

// node is one key of a resolved config, ready to be written.
type node struct {
	key  string
	free bool     // may differ on resume
	text string   // a value that is not a table, as TOML
	kids []node   // a table
	rows [][]node // an array of tables
}

func (n *node) isTable() bool { return n.text == "" && n.rows == nil }

// dump turns a struct into nodes, in the order of its fields; what is empty and omitzero is left out.
func dump(rv reflect.Value, free bool) []node {
	var out []node
	for _, f := range fields(rv.Type()) {
		v := rv.Field(f.index)
		if f.omitZero && isEmpty(v) || v.Kind() == reflect.Pointer && v.IsNil() {
			continue
		}
		n := node{key: f.key, free: free || f.free}
		n.fill(v, &f)
		if n.isTable() && len(n.kids) == 0 || n.rows != nil && len(n.rows) == 0 {
			continue
		}
		out = append(out, n)
	}
	return out
}

func (n *node) fill(v reflect.Value, f *field) {
	switch x := v.Interface().(type) {
	case time.Duration:
		n.text = quote(formatDuration(x))
		if x == 0 && f.has("off") {
			n.text = quote("off")
		}
		return
	case *EnvGrant:
		if len(x.Sampling) == 0 {
			n.text = "true"
			return
		}
	case map[string]any:
		n.kids = dumpMap(x, n.free)
		return
	case map[string]string:
		for _, k := range sorted(x) {
			n.kids = append(n.kids, node{key: k, free: n.free, text: quote(x[k])})
		}
		return
	case uint64:
		n.text = strconv.FormatUint(x, 10)
		return
	case []string:
		n.text = inline(plain(x))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		n.fill(v.Elem(), f)
	case reflect.Struct:
		n.kids = dump(v, n.free)
	case reflect.Slice:
		n.rows = make([][]node, v.Len())
		for i := range v.Len() {
			n.rows[i] = dump(v.Index(i), n.free)
		}
	case reflect.Int, reflect.Int64:
		n.text = strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		n.text = formatFloat(v.Float())
	case reflect.Bool:
		n.text = strconv.FormatBool(v.Bool())
	case reflect.String:
		n.text = quote(v.String())
	default: // no other kind is in a Config
	}
}

func dumpMap(m map[string]any, free bool) []node {
	var out []node
	for _, k := range sorted(m) {
		n := node{key: k, free: free}
		if sub, ok := m[k].(map[string]any); ok && len(sub) > 0 {
			n.kids = dumpMap(sub, free)
		} else {
			n.text = inline(m[k])
		}
		out = append(out, n)
	}
	return out
}
