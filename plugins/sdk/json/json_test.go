package json_test

import (
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/sdk/json"
)

func texts() []string {
	return []string{
		`null`, `true`, `false`, `0`, `-0`, `12`, `-12`, `1.5`, `1e3`, `-1.5E-2`, `9223372036854775807`, `9223372036854775808`,
		`""`, `"a"`, `"ü"`, `"\"\\\/\b\f\n\r\t\u00fc"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ude00"`, "\"\xff\"", `"😀"`,
		`[]`, `[1, "a", null]`, ` { "a" : 1 , "b":{"c":[true]} } `, `{}`, `{"a":1,"a":2}`, "\t[\n1\r]\n",
		``, ` `, `tru`, `nul`, `01`, `+1`, `1.`, `.5`, `1e`, `-`, `"`, `"\x"`, `"\u12g4"`, `"\u12`, "\"\n\"", `[`, `[1`, `[1,]`, `[,1]`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`,
		`{a:1}`, `{1:1}`, `1 2`, `[1]x`, `'a'`, `NaN`, `1e999`, `"\ud83d\u`, `"\ud83d\ud83d\ude00"`,
	}
}

// want is the verdict and value of encoding/json, with whole numbers as int64 where they fit.
func want(s string) (any, bool) {
	var v any
	if err := stdjson.Unmarshal([]byte(s), &v); err != nil {
		return nil, false
	}
	d := stdjson.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	return numbers(v), true
}

func numbers(v any) any {
	switch v := v.(type) {
	case stdjson.Number:
		if !strings.ContainsAny(string(v), ".eE") {
			if i, err := v.Int64(); err == nil {
				return i
			}
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

func check(t *testing.T, s string) {
	t.Helper()
	v, ok := want(s)
	got, err := json.Parse([]byte(s))
	if (err == nil) != ok || ok && !reflect.DeepEqual(got, v) {
		t.Errorf("%q: got %#v, %v; encoding/json: %#v, %v", s, got, err, v, ok)
	}
}

func TestParse(t *testing.T) {
	for _, s := range texts() {
		check(t, s)
	}
}

func TestParse_Deep(t *testing.T) {
	for n, ok := range map[int]bool{200: true, 100_000: false} {
		if _, err := json.Parse([]byte(strings.Repeat("[", n) + strings.Repeat("]", n))); (err == nil) != ok {
			t.Errorf("depth %d: got %v", n, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range texts() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Count(s, "[")+strings.Count(s, "{") < 200 {
			check(t, s)
		}
	})
}
