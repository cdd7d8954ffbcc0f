package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/wevalr/wevalr/host/scan"
)

// TestDecodeRun_Hostile: what kills or starves a plain decoder is an error here, at once.
func TestDecodeRun_Hostile(t *testing.T) {
	trace := []byte("\x82\xa5trace\xa1a\xa5nodes")
	rows := map[string][]byte{
		"4G nodes":        append(bytes.Clone(trace), 0xdd, 0xff, 0xff, 0xff, 0xff),
		"8 MB of nil":     append(append(bytes.Clone(trace), 0xdd, 0, 0x80, 0, 0), bytes.Repeat([]byte{0xc0}, 8<<20)...),
		"empty maps":      append(append(bytes.Clone(trace), 0xdd, 0, 0x0f, 0, 0), bytes.Repeat([]byte{0x80}, 0x0f0000)...),
		"deep":            append(bytes.Clone(trace), bytes.Repeat([]byte{0x91}, 10_000_000)...),
		"wide nested map": bytes.Repeat([]byte{0xdf, 0, 0x10, 0, 0, 0xa1, 'k'}, 50),
		"bin of 4G":       append(bytes.Clone(trace), 0xc6, 0xff, 0xff, 0xff, 0xff),
		"ext":             append(bytes.Clone(trace), 0xc7, 1, 5, 0),
		"nothing":         {},
	}
	open := pack(t, opened("a"))
	for name, b := range rows {
		start := time.Now()
		_, err := DecodeRun([][]byte{open, b}, EncodeFailure("x"), false)
		if _, ok := err.(*ProtocolError); !ok {
			t.Errorf("%s: got %v, want a *ProtocolError", name, err)
		}
		if took := time.Since(start); took > time.Second { // a runaway, not a benchmark
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func FuzzDecodeRun(f *testing.F) {
	reply := pack(f, ownReply(nil))
	for _, d := range packAll(f, ownRun()) {
		f.Add(d, reply, false)
	}
	f.Add([]byte{0x80}, EncodeFailure("x"), false)
	f.Add([]byte{0xc1}, []byte{0xc1}, true)
	var whole sink
	ownEpisode(f).encode(&whole, true)
	f.Add([]byte{}, append(append(appendMapLen(nil, 2), "\xa7success\xc3\xa7episode"...), whole.b...), true)
	open := pack(f, opened("a"))
	f.Fuzz(func(t *testing.T, delta, reply []byte, legacy bool) {
		for _, p := range DecodePartial([][]byte{open, delta}) {
			if text := p.AppendJSON(nil); !json.Valid(text) {
				t.Fatalf("invalid JSON: %s", text)
			}
		}
		res, err := DecodeRun([][]byte{open, delta}, reply, legacy)
		if err != nil {
			if _, ok := err.(*ProtocolError); !ok {
				t.Fatalf("got %T", err)
			}
			_ = err.Error()
			return
		}
		if !res.Success {
			return
		}
		e := res.Episode
		e.Outcome()
		e.Refused()
		for i := range e.Traces {
			e.Traces[i].Completion()
		}
		text := line(t, e)
		again, err := ParseEpisode(text)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if got := line(t, again); !bytes.Equal(got, text) {
			t.Fatalf("got %s\nwant %s", got, text)
		}
	})
}

// FuzzJSON holds JSON → msgpack → JSON against the standard library's reading of both texts.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		ownLine, `null`, ` [1, -0, 1.0, 1e3, -2.5E-7, 18446744073709551615, 99999999999999999999]`,
		`{"a":{"b":[]},"":"\u00e9\ud83d\ude00\ud83d \"\\\/\b\f\n\r\t\u0001"}`, `"é世界"`, `[true,false,null]`,
		`1e999`, `{"a":1,}`, `[` + strings.Repeat(`0,`, 20) + `0]`, strings.Repeat(`[`, 129) + strings.Repeat(`]`, 129),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := fromJSON(nil, text)
		if err != nil {
			return
		}
		if err := scan.Check(b, scan.Limits{}); err != nil {
			if e := err.(*scan.Error); e.Rule != scan.Depth && e.Rule != scan.Containers {
				t.Fatalf("%s became %x: %v", text, b, err)
			}
		}
		out := Value(b).appendJSON(nil, 0)
		var got, want any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %s, want %s", out, text)
		}
		again, err := fromJSON(nil, out)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("JSON → msgpack is not stable: %x, then %x (%v)", b, again, err)
		}
	})
}

// FuzzValue holds our reading of plain values against the library's.
func FuzzValue(f *testing.F) {
	f.Add(pack(f, ownRun()))
	f.Add(pack(f, l{1, -1, 200, -200, 70000, -70000, uint64(math.MaxUint64), int64(math.MinInt64), 1.5, float32(2.5), []byte{1}, "x", nil, true}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if scan.Check(b, scan.Limits{}) != nil {
			return
		}
		got := Value(b).Any()
		r := reader{b: b}
		if r.skip(); r.err != nil || r.i != len(b) {
			t.Fatalf("skip stopped at %d of %d: %v", r.i, len(b), r.err)
		}
		var want any
		d := msgpack.NewDecoder(bytes.NewReader(b))
		d.UseLooseInterfaceDecoding(true)
		if err := d.Decode(&want); err != nil {
			return // integer keys, which the library does not take
		}
		enc, err := ValueOf(loose(got))
		if err != nil {
			t.Fatal(err)
		}
		ref, err := ValueOf(want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(enc, ref) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// loose is v as the library gives it: bytes are strings.
func loose(v any) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case []any:
		for i := range v {
			v[i] = loose(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = loose(v[k])
		}
	}
	return v
}

func FuzzDecodeRunRequest(f *testing.F) {
	f.Add(pack(f, m{"task_data": m{}, "client": m{"type": "eval"}, "model": "x", "sampling": m{}}))
	f.Add(pack(f, m{"task_data": 1, "client": m{"type": "x", "headers": l{}}, "model": nil}))
	f.Add([]byte{0xc1})
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := DecodeRunRequest(b)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		if _, err := q.Encode(); err != nil {
			t.Fatal(err)
		}
	})
}
