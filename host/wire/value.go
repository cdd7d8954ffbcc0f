package wire

import (
	"bytes"
	"fmt"
	"strings"
)

// Value is a part of a message that this package does not look into, kept as the msgpack bytes it
// came in: cheap to hold, and nothing of it is lost. nil means absent. Make one with [ValueOf].
type Value []byte

// ValueOf encodes plain Go data: nil, bool, string, []byte, integers, floats, json.Number, Value,
// and maps with string keys and slices of those. Map keys are sorted.
//
// # Errors
//
// A value of another type, with the path to it.
func ValueOf(v any) (Value, error) { return appendAny(nil, v) }

// mustValue encodes what is known to be encodable.
func mustValue(v any) Value {
	b, err := appendAny(nil, v)
	if err != nil {
		panic(fmt.Sprintf("wire: %v", err))
	}
	return b
}

// IsNil reports whether the value is absent or nil.
func (v Value) IsNil() bool { return len(v) == 0 || v[0] == 0xc0 }

// Any decodes the value: map[string]any, []any, string, []byte, bool, int64 (uint64 where it does
// not fit), float64, nil. Integer keys become their decimal text.
func (v Value) Any() any {
	if len(v) == 0 {
		return nil
	}
	r := reader{b: v}
	return r.any()
}

// Map decodes a map; anything else gives nil.
func (v Value) Map() map[string]any {
	m, _ := v.Any().(map[string]any)
	return m
}

// Get is the value at a path of map keys, nil where there is none. It decodes nothing on the way.
func (v Value) Get(path ...string) Value {
	for _, k := range path {
		v = v.get(k)
	}
	return v
}

func (v Value) get(name string) Value {
	if len(v) == 0 {
		return nil
	}
	r := reader{b: v}
	if !r.isMap() {
		return nil
	}
	for range r.mapLen() {
		k := r.key()
		start := r.i
		r.skip()
		if string(k) == name {
			return v[start:r.i:r.i]
		}
	}
	return nil
}

// Str is the string that the value is, else "".
func (v Value) Str() string {
	s, _ := v.Any().(string)
	return s
}

// MarshalJSON writes the value as JSON.
func (v Value) MarshalJSON() ([]byte, error) { return v.appendJSON(nil, 0), nil }

// with is the map v with name set to val; what is no map is replaced.
func (v Value) with(name string, val Value) Value {
	r := reader{b: v}
	n := 0
	var body []byte
	if len(v) > 0 && r.isMap() {
		for range r.mapLen() {
			start := r.i
			k := r.key()
			r.skip()
			if string(k) != name {
				body, n = append(body, v[start:r.i]...), n+1
			}
		}
	}
	if val != nil {
		body, n = append(appendStr(body, name), val...), n+1
	}
	return append(appendMapLen(nil, n), body...)
}

// Field is one unknown field of a message.
type Field struct {
	Name  string
	Value Value
}

// Extra are the fields of a message that this version does not know, in the order they came.
// Unknown fields that are nil are dropped, as known ones are.
type Extra []Field //nolint:recvcheck // set grows the slice, Get reads a copy of its header

// Get is the field of that name, nil where there is none.
func (e Extra) Get(name string) Value {
	for _, f := range e {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// set replaces or adds a field; a nil value takes it away.
func (e *Extra) set(name []byte, v Value) {
	for i, f := range *e {
		if f.Name == string(name) {
			if v.IsNil() {
				*e = append((*e)[:i:i], (*e)[i+1:]...)
			} else {
				(*e)[i].Value = v
			}
			return
		}
	}
	if !v.IsNil() {
		*e = append(*e, Field{Name: string(name), Value: v})
	}
}

// same reports whether two values have equal bytes.
func (v Value) same(w Value) bool { return bytes.Equal(v, w) }

// validUTF8 is s, with what is no UTF-8 replaced by U+FFFD.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
