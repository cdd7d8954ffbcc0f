package config

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// field is a struct field with what its tags say.
//
// check is a list of: required; name, var (patterns, see patterns.go); path (made absolute);
// positive; off (a duration that may be "off"); min=, max=; enum=a|b.
type field struct {
	index    int
	key      string
	typ      reflect.Type
	omitZero bool
	free     bool   // may differ on resume
	def      string // "": the zero value
	checks   map[string]string
}

func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		key, opt, _ := strings.Cut(sf.Tag.Get("toml"), ",")
		if key == "" {
			continue
		}
		f := field{
			index: i, key: key, typ: sf.Type, omitZero: opt == "omitzero",
			free: sf.Tag.Get("resume") == "free", def: sf.Tag.Get("default"), checks: map[string]string{},
		}
		for c := range strings.SplitSeq(sf.Tag.Get("check"), ",") {
			name, arg, _ := strings.Cut(c, "=")
			f.checks[name] = arg
		}
		out = append(out, f)
	}
	return out
}

func (f *field) has(check string) bool { _, ok := f.checks[check]; return ok }

// binder fills the structs from the tree and finds every problem on the way. The decoder's own
// binding stops at the first and has no usable positions in arrays of tables.
type binder struct {
	source
	problems
	root reflect.Type
	dir  string // of the eval file, absolute
	set  map[string]bool
}

// report adds a problem at the key's place.
func (b *binder) report(path toml.Key, hint, msg string, args ...any) {
	from, line := b.at(path)
	e := &Error{Line: line, From: from, Key: path.String(), Msg: fmt.Sprintf(msg, args...), Hint: hint}
	if from == "" {
		e.File = b.file
	}
	b.add(e)
}

// given reports whether the file or an override has the key.
func (b *binder) given(path ...string) bool { return b.set[toml.Key(path).String()] }

func (b *binder) table(path toml.Key, m map[string]any, rv reflect.Value) {
	fs := fields(rv.Type())
	known := make([]string, len(fs))
	for i := range fs {
		f := &fs[i]
		known[i] = f.key
		at := child(path, f.key)
		v, ok := m[f.key]
		switch {
		case ok:
			b.set[at.String()] = true
			b.value(at, v, rv.Field(f.index), f)
		case f.has("required"):
			b.report(at, fmt.Sprintf("add %s = … to %s", f.key, tableName(path)), "missing")
		case f.def != "":
			b.value(at, literal(f), rv.Field(f.index), f)
		case f.typ.Kind() == reflect.Struct:
			b.table(at, nil, rv.Field(f.index))
		}
	}
	for _, k := range sorted(m) {
		if !slices.Contains(known, k) {
			b.report(child(path, k), unknownHint(k, known, b.root), "unknown key")
		}
	}
}

// tableName is how a person finds the table in the file.
func tableName(path toml.Key) string {
	switch {
	case len(path) == 0:
		return "the top of the file"
	case path[0] == "plugin" || path[0] == "score":
		return "this [[" + path[0] + "]]"
	}
	return "[" + path.String() + "]"
}

// literal is a field's default as the file would have it.
func literal(f *field) any {
	switch f.typ.Kind() {
	case reflect.Int:
		n, _ := strconv.ParseInt(f.def, 10, 64)
		return n
	case reflect.Float64:
		x, _ := strconv.ParseFloat(f.def, 64)
		return x
	default:
		return f.def
	}
}

func (b *binder) value(path toml.Key, v any, rv reflect.Value, f *field) {
	switch dst := rv.Addr().Interface().(type) {
	case *time.Duration:
		b.duration(path, v, dst, f)
		return
	case **EnvGrant:
		if on, ok := v.(bool); ok {
			if on {
				*dst = &EnvGrant{}
			}
			return
		}
	case *uint64:
		b.fuel(path, v, dst)
		return
	case *map[string]any:
		if m, ok := v.(map[string]any); ok {
			if b.open(path, m); len(m) > 0 {
				*dst = m
			}
			return
		}
	case *map[string]string:
		if m, ok := v.(map[string]any); ok {
			b.strings(path, m, dst, f)
			return
		}
	case *[]string:
		if list, ok := v.([]any); ok {
			b.list(path, list, dst, f)
			return
		}
	case *string:
		if s, ok := v.(string); ok {
			*dst = b.text(path, s, f)
			return
		}
	case *bool:
		if x, ok := v.(bool); ok {
			*dst = x
			return
		}
	case *int:
		if n, ok := v.(int64); ok && int64(int(n)) == n {
			*dst = int(n)
			b.bounds(path, float64(n), fmt.Sprint(n), f)
			return
		}
	case *int64:
		if n, ok := v.(int64); ok {
			*dst = n
			return
		}
	case *float64:
		if x, ok := number(v); ok {
			*dst = x
			b.bounds(path, x, formatFloat(x), f)
			return
		}
	}
	b.compound(path, v, rv, f)
}

// compound binds tables, arrays of tables and pointers to either; anything else has a wrong type.
func (b *binder) compound(path toml.Key, v any, rv reflect.Value, f *field) {
	switch rv.Kind() {
	case reflect.Struct:
		if m, ok := v.(map[string]any); ok {
			b.table(path, m, rv)
			return
		}
	case reflect.Slice:
		list, ok := v.([]any)
		if ok && structOf(f.typ) != nil {
			rv.Set(reflect.MakeSlice(rv.Type(), len(list), len(list)))
			for i, x := range list {
				at := child(path, strconv.Itoa(i))
				m, ok := x.(map[string]any)
				if !ok {
					b.report(at, "write [["+f.key+"]]", "expected a table, got %s", seen(path, x))
					continue
				}
				b.table(at, m, rv.Index(i))
			}
			return
		}
	case reflect.Pointer:
		if p := reflect.New(rv.Type().Elem()); structOf(f.typ) == nil || kindOf(v) == "a table" {
			b.value(path, v, p.Elem(), f)
			rv.Set(p)
			return
		}
	default:
	}
	want, example := expected(path, f)
	b.report(path, "for example "+example, "expected %s, got %s", want, seen(path, v))
}

// expected names a field's type and shows a value.
func expected(path toml.Key, f *field) (want, example string) {
	switch f.typ.Kind() {
	case reflect.String:
		want, example = "a string", `"…"`
		if f.def != "" {
			example = quote(f.def)
		}
	case reflect.Bool:
		want, example = "true or false", "true"
	case reflect.Int, reflect.Int64:
		want, example = "an integer", cmp.Or(f.def, "1")
	case reflect.Float64, reflect.Pointer:
		want, example = "a number", cmp.Or(f.def, "0.5")
		if structOf(f.typ) != nil {
			want, example = "true or a table", "true"
		}
	case reflect.Slice:
		if structOf(f.typ) != nil {
			return "an array of tables", "[[" + f.key + "]]"
		}
		want, example = "an array of strings", `["…"]`
	case reflect.Map:
		want, example = "a table", "{ key = 1 }"
		if f.typ.Elem().Kind() == reflect.String {
			want, example = "a table of strings", `{ key = "…" }`
		}
	default:
		want, example = "a table", "{ … }"
		if len(path) == 1 {
			return want, tableName(path)
		}
	}
	return want, f.key + " = " + example
}

// seen describes a wrong value; never what stands under client, where somebody may have put a key.
func seen(path toml.Key, v any) string {
	kind := kindOf(v)
	if slices.Contains(path, "client") {
		return kind
	}
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%s (%s)", kind, quote(clip(v)))
	case int64, bool:
		return fmt.Sprintf("%s (%v)", kind, v)
	case float64:
		return fmt.Sprintf("%s (%s)", kind, formatFloat(v))
	}
	return kind
}

func (b *binder) bounds(path toml.Key, x float64, shown string, f *field) {
	lo, hasLo := f.checks["min"]
	hi, hasHi := f.checks["max"]
	low, _ := strconv.ParseFloat(lo, 64)
	high, _ := strconv.ParseFloat(hi, 64)
	if math.IsNaN(x) || math.IsInf(x, 0) || hasLo && x < low || hasHi && x > high {
		want := "be " + lo + " or more"
		if hasHi {
			want = "be from " + lo + " to " + hi
		}
		b.report(path, rangeHint(f), "must %s, got %s", want, shown)
	}
}

func rangeHint(f *field) string {
	if f.def != "" {
		return "leave it out for the default, " + f.def
	}
	return "leave it out, or give a value in that range"
}
