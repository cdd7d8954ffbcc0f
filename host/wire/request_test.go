package wire

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
)

func TestRunRequest_RoundTrip(t *testing.T) {
	q := &RunRequest{
		TaskData: m{"prompt": "Grüße", "n": int64(1), "f": 1.0, "nil": nil, "list": l{true, "x", int64(-40)}},
		Client:   m{"type": "eval", "base_url": "http://x/v1", "headers": m{"a": "b"}},
		Model:    "x", Sampling: m{"temperature": 0.5},
		Wevalr: &Tag{Key: "k", Index: 3, Try: 1, Seed: 1<<31 - 1},
	}
	b, err := q.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeRunRequest(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, q) {
		t.Errorf("got %+v, want %+v", got, q)
	}
	empty, err := (&RunRequest{Client: m{"type": "eval"}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeRunRequest(empty); err != nil || got.Wevalr != nil || got.Sampling == nil {
		t.Errorf("nil maps: got %+v, %v", got, err)
	}
	if _, err := (&RunRequest{TaskData: m{"a": l{make(chan int)}}}).Encode(); err == nil || err.Error() != "run request: task_data: a: [0]: cannot encode a chan int" {
		t.Errorf("got %v", err)
	}
}

func TestDecodeRunRequest_Refused(t *testing.T) {
	ok := func(change m) []byte {
		q := m{"task_data": m{}, "client": m{"type": "eval"}, "model": "x", "sampling": m{}}
		maps.Copy(q, change)
		return pack(t, q)
	}
	if _, err := DecodeRunRequest(ok(m{"more": 1, "wevalr": "odd"})); err != nil {
		t.Errorf("unknown keys: %v", err)
	}
	rows := []struct {
		name    string
		payload []byte
		want    string
	}{
		{"task_data", ok(m{"task_data": l{}}), "1 validation error for RunRequest\ntask_data\n  Input should be a valid dictionary [type=dict_type, input_value=[], input_type=list]"},
		{"model", ok(m{"model": 7}), "model\n  Input should be a valid string [type=string_type, input_value=7, input_type=int]"},
		{"sampling", ok(m{"sampling": nil}), "sampling\n  Input should be a valid dictionary or instance of SamplingConfig [type=model_type, input_value=None, input_type=NoneType]"},
		{"client no map", ok(m{"client": "it's"}), `client
  Input should be a valid dictionary or object to extract fields from [type=model_attributes_type, input_value="it's", input_type=str]`},
		{"client without type", ok(m{"client": m{}}), "client\n  Unable to extract tag using discriminator 'type' [type=union_tag_not_found, input_value={}, input_type=dict]"},
		{"client of no kind", ok(m{"client": m{"type": "fly"}}), "Input tag 'fly' found using 'type' does not match any of the expected tags: 'eval', 'train' [type=union_tag_invalid"},
		{"client key", ok(m{"client": m{"type": "eval", "foo": true}}), "client.eval.foo\n  Extra inputs are not permitted [type=extra_forbidden, input_value=True, input_type=bool]"},
		{"client key of the other kind", ok(m{"client": m{"type": "eval", "multiplex": 1}}), "client.eval.multiplex\n  Extra inputs"},
		{"header", ok(m{"client": m{"type": "train", "headers": m{"a": 1.5}}}), "client.train.headers.a\n  Input should be a valid string [type=string_type, input_value=1.5, input_type=float]"},
		{"two", ok(m{"model": nil, "task_data": 1}), "2 validation errors for RunRequest\ntask_data\n"},
		{"trailing", []byte{0x80, 0x80}, "ExtraData: unpack(b) received extra data."},
		{"empty", nil, "ValueError: Unpack failed: incomplete input"},
		{"no msgpack", []byte{0xc1}, "FormatError: "},
		{"not UTF-8", []byte{0xa1, 0xff}, "UnicodeDecodeError: "},
	}
	for _, row := range rows {
		_, err := DecodeRunRequest(row.payload)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v\nwant %s", row.name, err, row.want)
		}
		_, validation := err.(*ValidationError)
		if got := PeerFailure(err.Error()).Kind; (got == "refused") != validation {
			t.Errorf("%s: a peer that says so is %s", row.name, got)
		}
	}
}

func TestValueOf(t *testing.T) {
	v, err := ValueOf(m{"b": []byte{1}, "i8": int8(-3), "u": uint64(1 << 63), "f32": float32(0.5), "n": json.Number("7"), "fn": json.Number("7.0"), "ss": []string{"x"}, "sm": map[string]string{"k": "v"}, "ms": []map[string]any{{"a": nil}}, "v": Value(nil), "bad": "a\xff"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"b":"AQ==","bad":"a` + "\uFFFD" + `","f32":0.5,"fn":7.0,"i8":-3,"ms":[{"a":null}],"n":7,"sm":{"k":"v"},"ss":["x"],"u":9223372036854775808,"v":null}`
	got, err := json.Marshal(v)
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
	if got := v.Get("sm", "k").Str(); got != "v" {
		t.Errorf("got %q", got)
	}
	if v.Get("sm", "no") != nil || v.Get("n", "no") != nil || Value(nil).Get("x") != nil || Value(nil).Any() != nil {
		t.Error("what is not there is not nil")
	}
	if _, err := ValueOf(json.Number("1e999")); err == nil {
		t.Error("a number out of range was accepted")
	}
}
