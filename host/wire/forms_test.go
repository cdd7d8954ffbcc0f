package wire

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestForms: every length and number form reads back, in both formats, and is written in the
// shortest way, as the library writes it.
func TestForms(t *testing.T) {
	var v l
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536} {
		list := make(l, n)
		dict := make(m, n)
		for i := range n {
			dict[fmt.Sprint("k", i)] = int64(i)
		}
		v = append(v, strings.Repeat("x", n), strings.Repeat("é", n), list, dict)
	}
	for shift := range 64 {
		n := int64(1) << shift
		v = append(v, n, n-1, -n, -n-1, float64(n), math.Ldexp(1, -shift))
	}
	v = append(v, uint64(math.MaxUint64), 0.1, 1e16, 1e15, 1e-5, 9e-6, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Copysign(0, -1))
	enc, err := ValueOf(v)
	if err != nil {
		t.Fatal(err)
	}
	if want := pack(t, v); !bytes.Equal(enc, want) {
		t.Error("not the shortest form")
	}
	text := enc.appendJSON(nil, 0)
	back, err := fromJSON(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back, enc) {
		t.Error("JSON did not keep it")
	}
	bin, _ := ValueOf(l{make([]byte, 255), make([]byte, 256), make([]byte, 65536)})
	if want := pack(t, l{make([]byte, 255), make([]byte, 256), make([]byte, 65536)}); !bytes.Equal(bin, want) {
		t.Error("bin: not the shortest form")
	}
	if got, _ := bin.Any().([]any); len(got) != 3 || len(got[2].([]byte)) != 65536 {
		t.Error("bin did not read back")
	}
}

func TestAppendJSON_Numbers(t *testing.T) {
	rows := map[float64]string{
		1: "1.0", -0.5: "-0.5", 1795967153.1946344: "1795967153.1946344", 1e15: "1000000000000000.0",
		1e16: "1e+16", 1e-5: "0.00001", 1e-6: "1e-06", math.Inf(1): "null", math.NaN(): "null",
	}
	for f, want := range rows {
		if got := string(appendJSONFloat(nil, f)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestStreams: a token stream comes as a list or as a tensor of any dtype that can hold it.
func TestStreams(t *testing.T) {
	ints := func(v any) (out []int32, err *mismatch) {
		r := reader{b: pack(t, v)}
		out = r.ints()
		return out, r.err
	}
	floats := func(v any) (out []float64, err *mismatch) {
		r := reader{b: pack(t, v)}
		out = r.floats()
		return out, r.err
	}
	for _, v := range []any{
		l{3, 250},
		nd("uint8", []byte{3, 250}, 2), nd("uint16", []byte{3, 0, 250, 0}, 2), nd("int16", []byte{3, 0, 250, 0}, 2),
		nd("uint32", []byte{3, 0, 0, 0, 250, 0, 0, 0}, 2), nd("int32", []byte{3, 0, 0, 0, 250, 0, 0, 0}, 1, 2),
		nd("int64", []byte{3, 0, 0, 0, 0, 0, 0, 0, 250, 0, 0, 0, 0, 0, 0, 0}, 2), nd("uint64", []byte{3, 0, 0, 0, 0, 0, 0, 0, 250, 0, 0, 0, 0, 0, 0, 0}, 2),
	} {
		if got, err := ints(v); err != nil || fmt.Sprint(got) != "[3 250]" {
			t.Errorf("%v: got %v, %v", v, got, err)
		}
	}
	for _, v := range []any{
		l{0.5, -2},
		l{float32(0.5), -2.0},
		nd("float32", []byte{0, 0, 0, 0x3f, 0, 0, 0, 0xc0}, 2), nd("bfloat16", []byte{0, 0x3f, 0, 0xc0}, 2),
		nd("float64", []byte{0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0}, 2),
	} {
		if got, err := floats(v); err != nil || fmt.Sprint(got) != "[0.5 -2]" {
			t.Errorf("%v: got %v, %v", v, got, err)
		}
	}
	if got, err := floats(nd("int8", []byte{0xff}, 1)); err != nil || got[0] != -1 {
		t.Errorf("int8: got %v, %v", got, err)
	}
	if got, _ := ints(nil); got != nil {
		t.Errorf("nil: got %v", got)
	}
	if got, _ := ints(nd("int32", []byte{}, 0)); got == nil || len(got) != 0 {
		t.Errorf("empty tensor: got %v, want empty, not nil", got)
	}
	for _, v := range []any{
		nd("uint64", bytes.Repeat([]byte{0xff}, 8), 1), nd("int64", bytes.Repeat([]byte{0x7f}, 8), 1), nd("float16", []byte{0, 0}, 1),
		nd("complex64", make([]byte, 8), 1),
		m{"dtype": "uint8", "shape": l{1}, "data": []byte{1}},
		nd("uint8", []byte{1}, -1), "text",
		l{"text"},
		l{1.5},
	} {
		if got, err := ints(v); err == nil {
			t.Errorf("%v: accepted as %v", v, got)
		}
	}
}
