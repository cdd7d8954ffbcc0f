package config

import (
	"fmt"
	"reflect"
	"strings"
)

// nearest returns the candidate that a person may have meant by s, or "".
func nearest(s string, candidates []string) string {
	limit := max(1, len(s)/3)
	best := ""
	for _, c := range candidates {
		if d := distance(strings.ToLower(s), strings.ToLower(c)); d <= limit {
			best, limit = c, d-1
		}
	}
	for _, c := range candidates {
		if best == "" && len(s) >= 3 && strings.HasPrefix(c, s) {
			best = c
		}
	}
	return best
}

// distance is the optimal string alignment distance: insertions, deletions, substitutions and
// swaps of neighbours.
func distance(a, b string) int {
	if len(a) > maxKeyBytes || len(b) > maxKeyBytes {
		return maxKeyBytes
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

// unknownHint says what may have been meant by an unknown key of a table with these keys.
func unknownHint(key string, here []string, root reflect.Type) string {
	if n := nearest(key, here); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	if where := elsewhere(key, root, ""); where != "" {
		return fmt.Sprintf("did you mean %s? that is where %q belongs", where, key)
	}
	return "keys that are known here: " + strings.Join(here, ", ")
}

// elsewhere finds the table of the schema that has the key.
func elsewhere(key string, t reflect.Type, prefix string) string {
	for _, f := range fields(t) {
		if prefix != "" && f.key == key {
			return prefix + key
		}
		if sub := structOf(f.typ); sub != nil {
			if where := elsewhere(key, sub, prefix+f.key+"."); where != "" {
				return where
			}
		}
	}
	return ""
}

// structOf is the struct behind a table or an array of tables, or nil.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}
