package codec

import (
	"errors"
	"math"
	"slices"
)

// Writer appends msgpack to B. Equal values give equal bytes: the keys of a map are sorted. The
// first error sticks in Err.
type Writer struct {
	B   []byte
	Err error

	depth int
}

// Nil appends nil.
func (w *Writer) Nil() { w.B = append(w.B, 0xc0) }

// Bool appends a bool.
func (w *Writer) Bool(v bool) {
	if v {
		w.B = append(w.B, 0xc3)
	} else {
		w.B = append(w.B, 0xc2)
	}
}

// Int appends an integer in its shortest form.
func (w *Writer) Int(v int64) {
	if v >= 0 {
		w.Uint(uint64(v))
		return
	}
	switch {
	case v >= -32:
		w.B = append(w.B, byte(v))
	case v >= math.MinInt8:
		w.B = append(w.B, 0xd0, byte(v))
	case v >= math.MinInt16:
		w.big(0xd1, uint64(v), 2)
	case v >= math.MinInt32:
		w.big(0xd2, uint64(v), 4)
	default:
		w.big(0xd3, uint64(v), 8)
	}
}

// Uint appends an unsigned integer in its shortest form.
func (w *Writer) Uint(v uint64) {
	switch {
	case v <= 0x7f:
		w.B = append(w.B, byte(v))
	case v <= math.MaxUint8:
		w.B = append(w.B, 0xcc, byte(v))
	case v <= math.MaxUint16:
		w.big(0xcd, v, 2)
	case v <= math.MaxUint32:
		w.big(0xce, v, 4)
	default:
		w.big(0xcf, v, 8)
	}
}

// Float appends a float of 64 bits.
func (w *Writer) Float(v float64) { w.big(0xcb, math.Float64bits(v), 8) }

// String appends a string.
func (w *Writer) String(s string) {
	switch n := len(s); {
	case n < 32:
		w.B = append(w.B, 0xa0|byte(n))
	case n <= math.MaxUint8:
		w.B = append(w.B, 0xd9, byte(n))
	case n <= math.MaxUint16:
		w.big(0xda, uint64(n), 2)
	default:
		w.big(0xdb, uint64(n), 4)
	}
	w.B = append(w.B, s...)
}

// Bytes appends a byte string.
func (w *Writer) Bytes(b []byte) {
	switch n := len(b); {
	case n <= math.MaxUint8:
		w.B = append(w.B, 0xc4, byte(n))
	case n <= math.MaxUint16:
		w.big(0xc5, uint64(n), 2)
	default:
		w.big(0xc6, uint64(n), 4)
	}
	w.B = append(w.B, b...)
}

// Map starts a map of n pairs.
func (w *Writer) Map(n int) { w.head(0x80, 0xde, n) }

// Array starts an array of n values.
func (w *Writer) Array(n int) { w.head(0x90, 0xdc, n) }

func (w *Writer) head(fix, wide byte, n int) {
	switch {
	case n < 16:
		w.B = append(w.B, fix|byte(n))
	case n <= math.MaxUint16:
		w.big(wide, uint64(n), 2)
	default:
		w.big(wide+1, uint64(n), 4)
	}
}

func (w *Writer) big(c byte, v uint64, n int) {
	w.B = append(w.B, c)
	for i := n - 1; i >= 0; i-- {
		w.B = append(w.B, byte(v>>(8*i)))
	}
}

// Any appends a value of the kinds that [Reader.Any] gives, of Go's other integer and float types,
// or a list or map of strings. Anything else, and nesting deeper than 256, is an error.
func (w *Writer) Any(v any) {
	if w.depth++; w.depth > maxDepth {
		w.Err = errDepth
		return
	}
	defer func() { w.depth-- }()
	switch v := v.(type) {
	case nil:
		w.Nil()
	case bool:
		w.Bool(v)
	case string:
		w.String(v)
	case int:
		w.Int(int64(v))
	case int32:
		w.Int(int64(v))
	case int64:
		w.Int(v)
	case uint32:
		w.Uint(uint64(v))
	case uint64:
		w.Uint(v)
	case float32:
		w.Float(float64(v))
	case float64:
		w.Float(v)
	case []byte:
		w.Bytes(v)
	case []any:
		w.Array(len(v))
		for _, e := range v {
			w.Any(e)
		}
	case map[string]any:
		writeMap(w, v, (*Writer).Any)
	case []string:
		w.Strings(v)
	case []map[string]any:
		w.Array(len(v))
		for _, e := range v {
			w.Any(e)
		}
	case map[string]string:
		writeMap(w, v, (*Writer).String)
	default:
		w.Nil()
		if w.Err == nil {
			w.Err = errors.New("msgpack: a value of a type that cannot be encoded")
		}
	}
}

// AnyMap appends a map, nil as an empty one.
func (w *Writer) AnyMap(m map[string]any) { w.Any(m) }

// Strings appends an array of strings.
func (w *Writer) Strings(list []string) { writeList(w, list, (*Writer).String) }

func writeList[T any](w *Writer, list []T, write func(*Writer, T)) {
	w.Array(len(list))
	for _, e := range list {
		write(w, e)
	}
}

func writeMap[T any](w *Writer, m map[string]T, write func(*Writer, T)) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	w.Map(len(m))
	for _, k := range keys {
		w.String(k)
		write(w, m[k])
	}
}

// fields writes a struct's map: the number of pairs is filled in at the end, so that absent fields
// need not be counted first. A struct has fewer than 16 fields.
type fields struct {
	w  *Writer
	at int
}

func (w *Writer) begin() fields {
	w.B = append(w.B, 0x80)
	return fields{w: w, at: len(w.B) - 1}
}

// put counts one pair and writes its key, if there is a value.
func (f fields) put(present bool, key string) bool {
	if present {
		f.w.B[f.at]++
		f.w.String(key)
	}
	return present
}
