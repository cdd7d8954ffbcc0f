package star

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// toStarlark turns plain data of the ABI into the script's. Dicts have their keys in sorted order.
func toStarlark(v any) starlark.Value {
	switch x := v.(type) {
	case bool:
		return starlark.Bool(x)
	case int:
		return starlark.MakeInt(x)
	case int64:
		return starlark.MakeInt64(x)
	case uint64:
		return starlark.MakeUint64(x)
	case float64:
		return starlark.Float(x)
	case string:
		return starlark.String(x)
	case []byte:
		return starlark.Bytes(x)
	case []string:
		return listOf(x, func(s string) starlark.Value { return starlark.String(s) })
	case []any:
		return listOf(x, toStarlark)
	case map[string]any:
		return dictOf(x, toStarlark)
	}
	return starlark.None
}

func listOf[T any](list []T, to func(T) starlark.Value) *starlark.List {
	out := make([]starlark.Value, len(list))
	for i, e := range list {
		out[i] = to(e)
	}
	return starlark.NewList(out)
}

func dictOf[T any](m map[string]T, to func(T) starlark.Value) *starlark.Dict {
	d := starlark.NewDict(len(m))
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		_ = d.SetKey(starlark.String(k), to(m[k])) // texts are hashable, and the dict is new
	}
	return d
}

// maxDepth bounds nesting; a value that contains itself ends here.
const maxDepth = 64

// fromStarlark is the way back; what JSON cannot hold is an error that says where it stands.
func fromStarlark(v starlark.Value, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch x := v.(type) {
	case starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(x), nil
	case starlark.Int:
		if n, ok := x.Int64(); ok {
			return n, nil
		}
		return nil, fmt.Errorf("integer %s is over 64 bits", cut(x.String()))
	case starlark.Float:
		return float64(x), nil
	case starlark.String:
		return string(x), nil
	case starlark.IterableMapping:
		m := map[string]any{}
		for _, kv := range x.Items() {
			k, ok := starlark.AsString(kv[0])
			if !ok {
				return nil, fmt.Errorf("key %s is not a string", cut(kv[0].String()))
			}
			e, err := fromStarlark(kv[1], depth+1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", cut(k), err)
			}
			m[k] = e
		}
		return m, nil
	case starlark.Iterable: // list, tuple, set, range
		out := []any{}
		for e := range starlark.Elements(x) {
			p, err := fromStarlark(e, depth+1)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", len(out), err)
			}
			out = append(out, p)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s cannot be stored: want None, a bool, number, string, list or dict", v.Type())
}

// cut keeps a message short.
func cut(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// field is one field of a record, made when it is first read.
type field struct {
	name  string
	value func() starlark.Value
}

// record is a task, an episode or a part of one: its fields can be read as attributes and as keys.
type record struct {
	kind   string
	fields []field
	made   map[string]starlark.Value
	frozen bool
}

func newRecord(kind string, fields ...field) *record {
	return &record{kind: kind, fields: fields, made: map[string]starlark.Value{}}
}

func (r *record) find(name string) (starlark.Value, bool) {
	if v, there := r.made[name]; there {
		return v, true
	}
	for _, f := range r.fields {
		if f.name == name {
			v := f.value()
			if r.frozen {
				v.Freeze()
			}
			r.made[name] = v
			return v, true
		}
	}
	return nil, false
}

// Attr implements starlark.HasAttrs.
func (r *record) Attr(name string) (starlark.Value, error) {
	if v, there := r.find(name); there {
		return v, nil
	}
	if name == "get" {
		return starlark.NewBuiltin("get", r.get), nil
	}
	return nil, starlark.NoSuchAttrError(fmt.Sprintf("%s has no field .%s, there are: %v", r.kind, name, r.AttrNames()))
}

// AttrNames implements starlark.HasAttrs.
func (r *record) AttrNames() []string {
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		names[i] = f.name
	}
	slices.Sort(names)
	return names
}

// Get implements starlark.Mapping.
func (r *record) Get(k starlark.Value) (starlark.Value, bool, error) {
	name, _ := starlark.AsString(k)
	v, there := r.find(name)
	return v, there, nil
}

// get is a dict's get: a field that is None counts as absent.
func (r *record) get(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	var fallback starlark.Value = starlark.None
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &name, &fallback); err != nil {
		return nil, err
	}
	if v, there := r.find(name); there && v != starlark.None {
		return v, nil
	}
	return fallback, nil
}

// Items implements starlark.IterableMapping, so that dict(task) and json.encode(task) work.
func (r *record) Items() []starlark.Tuple {
	var items []starlark.Tuple
	for _, name := range r.AttrNames() {
		v, _ := r.find(name)
		items = append(items, starlark.Tuple{starlark.String(name), v})
	}
	return items
}

// Iterate implements starlark.Iterable: over the names.
func (r *record) Iterate() starlark.Iterator {
	return listOf(r.AttrNames(), func(s string) starlark.Value { return starlark.String(s) }).Iterate()
}

func (r *record) String() string {
	d := starlark.NewDict(len(r.fields))
	for _, kv := range r.Items() {
		_ = d.SetKey(kv[0], kv[1]) // names are hashable, and the dict is new
	}
	return r.kind + "(" + d.String() + ")"
}

func (r *record) Type() string          { return r.kind }
func (r *record) Truth() starlark.Bool  { return true }
func (r *record) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: %s", r.kind) }

// Freeze implements starlark.Value.
func (r *record) Freeze() {
	r.frozen = true
	for _, v := range r.made {
		v.Freeze()
	}
}
