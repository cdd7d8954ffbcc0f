package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// TOML writes the config as resolved, defaults and all. Loaded from anywhere it gives an equal
// Config, as long as the paths in it are still there.
func (c *Config) TOML() []byte { return write(dump(reflect.ValueOf(c).Elem(), false)) }

// TOML writes the model as `serve --config` reads it.
func (m *Model) TOML() []byte {
	return write([]node{{key: "model", kids: dump(reflect.ValueOf(m).Elem(), false)}})
}

func write(nodes []node) []byte {
	var b strings.Builder
	for i := range nodes {
		if n := &nodes[i]; n.text != "" {
			fmt.Fprintf(&b, "%s = %s\n", toml.Key{n.key}, n.text)
		}
	}
	for i := range nodes {
		n := &nodes[i]
		if n.isTable() {
			section(&b, "["+n.key+"]", n.kids)
		}
		for _, row := range n.rows {
			section(&b, "[["+n.key+"]]", row)
		}
	}
	return []byte(b.String())
}

func section(b *strings.Builder, header string, nodes []node) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	fmt.Fprintln(b, header)
	for i := range nodes {
		fmt.Fprintf(b, "%s = %s\n", toml.Key{nodes[i].key}, nodes[i].inline())
	}
}

// inline is the node's value on one line.
func (n *node) inline() string {
	if !n.isTable() {
		return n.text
	}
	parts := make([]string, len(n.kids))
	for i := range n.kids {
		parts[i] = toml.Key{n.kids[i].key}.String() + " = " + n.kids[i].inline()
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// inline is a value of an open table on one line.
func inline(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatFloat(v)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = inline(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		if len(v) == 0 {
			return "{}"
		}
		n := node{kids: dumpMap(v, false)}
		return n.inline()
	}
	return quote(fmt.Sprint(v)) // no such value passes the binder
}

// formatFloat is the shortest text that reads back as the same float, and as no integer.
func formatFloat(x float64) string {
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if strings.ContainsAny(s, ".eIN") { // Inf and NaN appear in messages only
		return s
	}
	return s + ".0"
}

// quote is a TOML basic string on one line, control characters escaped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
