package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/wevalr/wevalr/host/internal/hosttest"
)

// bigRun is an episode of about a megabyte: 42 turns, 64 k tokens.
func bigRun(tb testing.TB) (deltas [][]byte, reply []byte) {
	tb.Helper()
	const turns, perNode = 42, 768
	var nodes, calls l
	var text strings.Builder
	for range 60 {
		text.WriteString("The quick brown fox. ")
	}
	for i := range 2 * turns {
		ids, mask := make([]int, perNode), make([]bool, perNode)
		var lps []float64
		for j := range ids {
			ids[j] = (i*7919 + j*104729) % 150000
			if mask[j] = i%2 == 1; mask[j] {
				lps = append(lps, -float64(j%97)/13)
			}
		}
		role := "user"
		if i%2 == 1 {
			role = "assistant"
			calls = append(calls, m{"node": i, "model": "x", "sampling": m{"temperature": 1.0}, "finish_reason": "stop", "usage": m{"prompt_tokens": 9, "completion_tokens": 9}, "time": m{"start": 1.5, "end": 2.5}})
		}
		nodes = append(nodes, m{"parent": i - 1, "message": m{"role": role, "content": text.String()}, "sampled": role == "assistant", "timestamp": 1.5, "token_ids": ids, "mask": mask, "is_content": mask, "logprobs": lps})
	}
	nodes[0].(m)["parent"] = nil
	// The real server writes the trace's id first.
	big := appendStr(appendStr(appendMapLen(nil, 3), "trace"), "a")
	big = append(appendStr(big, "nodes"), pack(tb, nodes)...)
	big = append(appendStr(big, "calls"), pack(tb, calls)...)
	deltas = packAll(tb, []any{opened("a"), m{"trace": "a", "set": m{"ok": true, "rewards": m{"r": m{"score": 1.0, "weight": 1.0}}}}})
	deltas = append(deltas[:1:1], big, deltas[1])
	return deltas, pack(tb, ownReply(m{"traces": l{m{"id": "a", "nodes": 2 * turns, "calls": turns}}}))
}

func size(deltas [][]byte, reply []byte) int64 {
	n := len(reply)
	for _, d := range deltas {
		n += len(d)
	}
	return int64(n)
}

func benchRun(b *testing.B, deltas [][]byte, reply []byte) {
	b.Helper()
	b.SetBytes(size(deltas, reply))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRun(deltas, reply, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeRun_Big(b *testing.B) {
	deltas, reply := bigRun(b)
	benchRun(b, deltas, reply)
}

// BenchmarkDecodeRun_BigPlain is the baseline: the library, into untyped values.
func BenchmarkDecodeRun_BigPlain(b *testing.B) {
	deltas, reply := bigRun(b)
	b.SetBytes(size(deltas, reply))
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range append(slices.Clip(deltas), reply) {
			var v any
			if err := msgpack.Unmarshal(d, &v); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkDecodeRun_Small is what every rollout costs: five deltas and a reply, 4.5 kB.
func BenchmarkDecodeRun_Small(b *testing.B) {
	deltas, reply := exchange(b, hosttest.Shared(b, traffic), "run_ok")
	benchRun(b, deltas, reply)
}

func small(b *testing.B) *Episode {
	b.Helper()
	deltas, reply := exchange(b, hosttest.Shared(b, traffic), "run_ok")
	res, err := DecodeRun(deltas, reply, false)
	if err != nil {
		b.Fatal(err)
	}
	return res.Episode
}

func BenchmarkAppendJSON_Small(b *testing.B) {
	e := small(b)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = e.AppendJSON(buf[:0])
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkAppendJSON_Big(b *testing.B) {
	res, err := DecodeRun(func() ([][]byte, []byte, bool) { d, r := bigRun(b); return d, r, false }())
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = res.Episode.AppendJSON(buf[:0])
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkParseEpisode_Small(b *testing.B) {
	text, _ := small(b).AppendJSON(nil)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEpisode(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParseEpisode_SmallPlain is the baseline: encoding/json into untyped values.
func BenchmarkParseEpisode_SmallPlain(b *testing.B) {
	text, _ := small(b).AppendJSON(nil)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRunRequest_Encode(b *testing.B) {
	q, err := DecodeRunRequest(read(b, hosttest.Shared(b, traffic), "run_ok.request.msgpack"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := q.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
