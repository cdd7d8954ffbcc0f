package envserver

import (
	"math"
	"testing"
)

func TestAppendPyJSON(t *testing.T) {
	// The wanted texts are Python 3.11's json.dumps(v, sort_keys=True).
	for _, c := range []struct {
		in   any
		want string
	}{
		{nil, "null"},
		{true, "true"},
		{int64(-7), "-7"},
		{uint64(math.MaxUint64), "18446744073709551615"},
		{1.0, "1.0"},
		{math.Copysign(0, -1), "-0.0"},
		{0.0001, "0.0001"},
		{0.00001, "1e-05"},
		{1e15, "1000000000000000.0"},
		{1e16, "1e+16"},
		{1.5e300, "1.5e+300"},
		{0.1, "0.1"},
		{math.NaN(), "NaN"},
		{math.Inf(-1), "-Infinity"},
		{"a\"\\/\b\f\n\r\t\x01\x7f", `"a\"\\/\b\f\n\r\t\u0001\u007f"`},
		{"é\u2028😀", `"\u00e9\u2028\ud83d\ude00"`},
		{[]any{}, "[]"},
		{map[string]any{}, "{}"},
		{map[string]any{"b": []any{int64(1), "x"}, "a": map[string]any{"é": nil}}, `{"a": {"\u00e9": null}, "b": [1, "x"]}`},
	} {
		got, err := appendPyJSON(nil, c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("appendPyJSON(%#v): got %s, %v, want %s", c.in, got, err, c.want)
		}
	}
	if _, err := appendPyJSON(nil, []any{[]byte("x")}); err == nil {
		t.Error("bytes are no JSON: got no error")
	}
}
