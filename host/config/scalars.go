package config

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

func (b *binder) text(path toml.Key, s string, f *field) string {
	want, isEnum := f.checks["enum"]
	switch {
	case !utf8.ValidString(s):
		b.report(path, "check how the shell passes it", "not valid UTF-8")
	case f.has("required") && s == "":
		b.report(path, "give it a value", "empty")
	case isEnum:
		if values := strings.Split(want, "|"); !slices.Contains(values, s) {
			b.report(path, choice(s, values), "unknown value %s", quote(clip(s)))
		}
	case f.has("name") && !isName(s):
		b.report(path, "lower-case letters, digits, . _ - ; at most 63, beginning with a letter or digit", "malformed name %s", quote(clip(s)))
	case f.has("var") && !isVar(s):
		b.report(path, "the name of an environment variable, never a value: "+varExample, "not the name of a variable")
	case f.has("path") && s != "":
		return b.abs(s)
	}
	return s
}

const varExample = `for example "OPENAI_API_KEY"`

// choice says what an enumeration allows.
func choice(s string, values []string) string {
	hint := "one of: " + strings.Join(values, ", ")
	if n := nearest(s, values); n != "" {
		hint = fmt.Sprintf("did you mean %q? %s", n, hint)
	}
	return hint
}

// abs makes a path absolute, relative to the eval file.
func (b *binder) abs(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.dir, path)
	}
	return filepath.Clean(path)
}

func (b *binder) list(path toml.Key, list []any, dst *[]string, f *field) {
	for i, x := range list {
		at := child(path, strconv.Itoa(i))
		s, ok := x.(string)
		if !ok {
			b.report(at, "put it in quotes", "expected a string, got %s", seen(path, x))
			continue
		}
		*dst = append(*dst, b.text(at, s, f))
	}
}

func (b *binder) strings(path toml.Key, m map[string]any, dst *map[string]string, f *field) {
	for _, k := range sorted(m) {
		at := child(path, k)
		s, ok := m[k].(string)
		if !ok {
			b.report(at, "put it in quotes", "expected a string, got %s", seen(at, m[k]))
			continue
		}
		if *dst == nil {
			*dst = map[string]string{}
		}
		b.set[at.String()] = true
		(*dst)[k] = b.text(at, s, f)
	}
}

// open checks a table whose keys are not ours: what it holds must survive JSON and msgpack.
func (b *binder) open(path toml.Key, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sorted(v) {
			at := child(path, k)
			b.set[at.String()] = true
			if k == "" || len(k) > maxKeyBytes || !utf8.ValidString(k) || len(at) > maxNesting {
				b.report(at, "give it a short name", "malformed key, or one that nests too deep") // an override's; the scanner has the file's
				continue
			}
			b.open(at, v[k])
		}
	case []any:
		for i, x := range v {
			b.open(child(path, strconv.Itoa(i)), x)
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b.report(path, "give a finite number", "not a finite number")
		}
	case string:
		if !utf8.ValidString(v) {
			b.report(path, "check how the shell passes it", "not valid UTF-8")
		}
	case int64, bool:
	default:
		b.report(path, "write it as a string, in quotes", "%s is not supported", kindOf(v))
	}
}

func (b *binder) duration(path toml.Key, v any, dst *time.Duration, f *field) {
	s, ok := v.(string)
	if !ok {
		b.report(path, `for example `+f.key+` = "30s"`, "expected a duration, got %s", seen(path, v))
		return
	}
	if f.has("off") && s == "off" {
		return
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		b.report(path, `a number with a unit: "500ms", "30s", "10m", "2h"`, "malformed duration %s", quote(clip(s)))
	case f.has("off") && d <= 0:
		b.report(path, `write "off" or a duration of more than 0`, "must be more than 0, got %s", s)
	case f.has("positive") && d <= 0:
		b.report(path, rangeHint(f), "must be more than 0, got %s", s)
	case d < 0:
		b.report(path, rangeHint(f), "must be 0 or more, got %s", s)
	default:
		*dst = d
	}
}

// fuel reads an integer or a string with a decimal suffix, as a manifest has it.
func (b *binder) fuel(path toml.Key, v any, dst *uint64) {
	const hint = `for example fuel = "2G" (K, M, G, T)`
	n, isInt := v.(int64)
	s, isString := v.(string)
	if !isInt && !isString {
		b.report(path, hint, "expected a number of units, got %s", seen(path, v))
		return
	}
	if isString {
		digits, scale := s, uint64(1)
		if i := strings.IndexAny(s, "KMGT"); i >= 0 && i == len(s)-1 {
			digits = s[:i]
			for range strings.IndexByte("KMGT", s[i]) + 1 {
				scale *= 1000
			}
		}
		u, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || u > math.MaxInt64/scale {
			b.report(path, hint, "malformed amount %s", quote(clip(s)))
			return
		}
		n = int64(u * scale)
	}
	if n < 1 {
		b.report(path, hint, "must be 1 or more, got %d", n)
		return
	}
	*dst = uint64(n)
}

// formatDuration is the shortest form that ParseDuration reads back.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// isEmpty is what omitzero leaves out: empty maps and slices too.
func isEmpty(rv reflect.Value) bool {
	switch rv.Kind() {
	case reflect.Map, reflect.Slice:
		return rv.Len() == 0
	case reflect.Struct:
		for _, field := range rv.Fields() {
			if !isEmpty(field) {
				return false
			}
		}
		return true
	default:
		return rv.IsZero()
	}
}
