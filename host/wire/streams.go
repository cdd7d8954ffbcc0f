package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// tensor is an array in one of the peer's two encodings, {"__nd__": true, dtype, shape, data} or
// {"__torch_tensor__": true, …}: row-major, little endian.
type tensor struct {
	tag   string
	dtype string
	shape []int64
	data  []byte
}

// itemSize is the bytes of one element, 0 for a dtype that streams do not have.
func itemSize(dtype string) int {
	switch dtype {
	case "bool", "uint8", "int8":
		return 1
	case "uint16", "int16", "float16", "bfloat16":
		return 2
	case "uint32", "int32", "float32":
		return 4
	case "uint64", "int64", "float64":
		return 8
	}
	return 0
}

// tensor takes a tensor; its bytes are not copied.
func (r *reader) tensor() (t tensor) {
	at := r.i
	for range r.mapLen() {
		switch k := r.key(); string(k) {
		case "__nd__", "__torch_tensor__":
			if r.bool() {
				t.tag = string(k)
			}
		case "dtype":
			t.dtype = r.str()
		case "shape":
			for range r.listLen() {
				t.shape = append(t.shape, r.i64())
			}
		case "data":
			t.data = r.bytes("bytes")
		default:
			r.skip()
		}
	}
	if r.err != nil {
		return t
	}
	n := int64(itemSize(t.dtype))
	for _, d := range t.shape {
		if d < 0 || d > int64(len(t.data)) && n > 0 {
			n = -1
			break
		}
		if n *= d; n > int64(len(t.data)) {
			break
		}
	}
	if t.tag == "" || n != int64(len(t.data)) || itemSize(t.dtype) == 0 {
		r.fail(at, fmt.Sprintf("a tensor whose dtype, shape and %d bytes of data agree", len(t.data)))
	}
	return t
}

func (t tensor) len() int { return len(t.data) / itemSize(t.dtype) }

// int is element i of an integer tensor.
func (t tensor) int(i int) (v int64, ok bool) {
	switch le := binary.LittleEndian; t.dtype {
	case "bool", "uint8":
		return int64(t.data[i]), true
	case "int8":
		return int64(int8(t.data[i])), true
	case "uint16":
		return int64(le.Uint16(t.data[2*i:])), true
	case "int16":
		return int64(int16(le.Uint16(t.data[2*i:]))), true
	case "uint32":
		return int64(le.Uint32(t.data[4*i:])), true
	case "int32":
		return int64(int32(le.Uint32(t.data[4*i:]))), true
	case "int64":
		return int64(le.Uint64(t.data[8*i:])), true
	case "uint64":
		u := le.Uint64(t.data[8*i:])
		return int64(u), u <= math.MaxInt64
	}
	return 0, false
}

// float is element i of a float or integer tensor.
func (t tensor) float(i int) (float64, bool) {
	switch le := binary.LittleEndian; t.dtype {
	case "float32":
		return float64(math.Float32frombits(le.Uint32(t.data[4*i:]))), true
	case "float64":
		return math.Float64frombits(le.Uint64(t.data[8*i:])), true
	case "bfloat16":
		return float64(math.Float32frombits(uint32(le.Uint16(t.data[2*i:])) << 16)), true
	}
	n, ok := t.int(i)
	return float64(n), ok
}

// stream takes a list or a tensor: fill reads the elements of the first, item gives one of
// the second. nil gives nil, an empty list an empty slice.
func stream[T any](r *reader, fill func(*reader, []T), item func(tensor, int) (T, bool)) []T {
	if r.null() {
		return nil
	}
	at := r.i
	if !r.isMap() {
		out := make([]T, r.listLen())
		fill(r, out)
		return out
	}
	t := r.tensor()
	if r.err != nil {
		return nil
	}
	out := make([]T, t.len())
	for i := range out {
		var ok bool
		if out[i], ok = item(t, i); !ok {
			r.fail(at, "a tensor of another dtype")
			return nil
		}
	}
	return out
}

// ints takes token ids. The forms that nearly all of them have are read in place.
func (r *reader) ints() []int32 { return stream(r, (*reader).fillInts, tensor.int32) }

func (r *reader) fillInts(out []int32) {
	b := r.b
	for k := range out {
		i := r.i
		switch {
		case i+5 > len(b):
		case b[i] < 0x80:
			out[k] = int32(b[i])
			r.i = i + 1
			continue
		case b[i] == 0xcd:
			out[k] = int32(binary.BigEndian.Uint16(b[i+1:]))
			r.i = i + 3
			continue
		case b[i] == 0xce && b[i+1] < 0x80:
			out[k] = int32(binary.BigEndian.Uint32(b[i+1:]))
			r.i = i + 5
			continue
		}
		n, ok := r.int()
		if ok && int64(int32(n)) != n {
			r.fail(i, "a 32-bit token id")
		}
		out[k] = int32(n)
	}
}

func (t tensor) int32(i int) (int32, bool) {
	n, ok := t.int(i)
	return int32(n), ok && int64(int32(n)) == n
}

func (r *reader) bools() []bool { return stream(r, (*reader).fillBools, tensor.bool) }

func (r *reader) fillBools(out []bool) {
	b := r.b[min(r.i, len(r.b)):]
	for k := range out {
		if k >= len(b) || b[k]&0xfe != 0xc2 {
			r.fail(r.i+k, "a bool")
			return
		}
		out[k] = b[k] == 0xc3
	}
	r.i += len(out)
}

func (t tensor) bool(i int) (bool, bool) {
	return t.data[i*itemSize(t.dtype)] != 0, t.dtype == "bool" || t.dtype == "uint8"
}

func (r *reader) floats() []float64 { return stream(r, (*reader).fillFloats, tensor.float) }

func (r *reader) fillFloats(out []float64) {
	b := r.b
	for k := range out {
		if i := r.i; len(b)-i >= 9 && b[i] == 0xcb {
			out[k] = math.Float64frombits(binary.BigEndian.Uint64(b[i+1:]))
			r.i = i + 9
			continue
		}
		if r.peek() == 0xc0 {
			r.i++
			out[k] = math.NaN() // null is how a stream's NaN reads back from JSON
			continue
		}
		out[k] = r.f64()
	}
}

// repair replaces the last row of a routing tensor, whose dtype widens to the row's when that is
// the wider one.
func repair(experts, row Value) (Value, error) {
	ra, rb := reader{b: experts}, reader{b: row}
	a, b := ra.tensor(), rb.tensor()
	if ra.err != nil || rb.err != nil || len(a.shape) == 0 || len(a.shape) != len(b.shape) || a.shape[0] < 1 || b.shape[0] != 1 {
		return nil, fmt.Errorf("row of shape %v does not fit routing of shape %v", b.shape, a.shape)
	}
	keep := a.len() - b.len()
	if int64(b.len()) != int64(a.len())/a.shape[0] {
		return nil, fmt.Errorf("row of shape %v does not fit routing of shape %v", b.shape, a.shape)
	}
	out := a
	if itemSize(b.dtype) > itemSize(a.dtype) {
		out.dtype = b.dtype
	}
	out.data = nil
	for i := range a.len() {
		from, at := a, i
		if i >= keep {
			from, at = b, i-keep
		}
		n, ok := from.int(at)
		if !ok {
			return nil, fmt.Errorf("routing of dtype %s and %s", a.dtype, b.dtype)
		}
		for k := range itemSize(out.dtype) {
			out.data = append(out.data, byte(n>>(8*k)))
		}
	}
	v := appendStr(appendBool(appendStr(appendMapLen(nil, 4), out.tag), true), "dtype")
	v = appendListLen(appendStr(appendStr(v, out.dtype), "shape"), len(out.shape))
	for _, d := range out.shape {
		v = appendInt(v, d)
	}
	return appendBin(appendStr(v, "data"), out.data), nil
}
