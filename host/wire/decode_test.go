package wire

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/wevalr/wevalr/host/failure"
)

type m = map[string]any

type l = []any

// pack encodes with the library, which knows nothing of this package.
func pack(tb testing.TB, v any) []byte {
	tb.Helper()
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.UseCompactInts(true)
	e.SetSortMapKeys(true) // "calls" before "open" before "trace": not the real server's order
	if err := e.Encode(v); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func nd(dtype string, data []byte, shape ...int) m {
	return m{"__nd__": true, "dtype": dtype, "shape": shape, "data": data}
}

func opened(id string) m {
	return m{"trace": id, "open": m{
		"version": 1, "id": id, "verifiers": m{"version": "9", "commit": nil},
		"task": m{"type": "T", "data": m{"idx": 1, "free": m{"a": nil}}, "key": "k", "hash": nil}, "novel": m{"x": 1.0, "y": 1},
	}}
}

// ownRun has everything at once: discard, links, repairs with integer keys, tensors in both
// encodings and lists, unknown fields at every level, bin, nil values of maps.
func ownRun() []any {
	return []any{
		opened("gone"),
		m{"trace": "gone", "calls": l{m{"node": nil, "error": m{"type": "ProviderError", "message": "x", "status_code": 500}}}},
		opened("a"),
		m{"trace": "gone", "discard": true},
		m{"trace": "a", "pending": l{m{"role": "user", "content": "hi"}}},
		m{
			"trace": "a", "surprise": l{1, 2},
			"nodes": l{
				m{
					"parent": nil, "message": m{"role": "user", "content": l{m{"type": "text", "text": "hi "}, m{"type": "image_url", "image_url": m{"url": "u"}}, m{"type": "text", "text": "you"}}},
					"sampled": false, "timestamp": 1, "token_ids": l{1, 200, 70000, -1}, "mask": nil, "is_content": l{}, "logprobs": l{},
					"routed_experts": nd("uint8", []byte{1, 2, 3, 4}, 2, 2),
				},
				m{
					"parent": 0, "message": m{"role": "assistant", "content": nil, "reasoning_content": "", "tool_calls": l{m{"id": "c", "type": "function", "name": "f", "arguments": "{}", "odd": true}}, "refusal": nil},
					"sampled": true, "timestamp": 2.5,
					"token_ids": nd("int32", []byte{5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, 2),
					"mask":      m{"__torch_tensor__": true, "dtype": "bool", "shape": l{2}, "data": []byte{0, 1}},
					"logprobs":  nd("float32", []byte{0, 0, 0, 0xbe}, 1), "advantages": l{1, 0.5},
					"top_logprobs": l{m{"5": -0.5}}, "sampling_mask": m{"ids": nd("int32", []byte{1, 0, 0, 0}, 1)},
				},
			},
			"calls": l{m{
				"node": 1, "model": "x", "sampling": m{"temperature": nil, "n": uint64(math.MaxUint64)}, "finish_reason": "stop",
				"usage": m{"prompt_tokens": 3, "completion_tokens": 2, "cached_input_tokens": 4, "cost": 0.25, "audio_tokens": 0}, "time": m{"start": 1.0, "end": 2.0}, "retries": 1,
			}},
		},
		m{"trace": "a", "links": map[int]any{0: l{m{"node": 1, "type": "summary"}}}, "routing_repairs": map[int]any{0: nd("uint16", []byte{0, 1, 9, 0}, 1, 2)}},
		m{"trace": "a", "set": m{
			"rewards": m{"r": m{"score": 0.5, "weight": 2, "why": "w"}, "none": nil, "nan": m{"score": math.NaN(), "weight": 1.0}}, "metrics": m{"n": 2, "nil": nil, "inf": math.Inf(1)},
			"info": m{"t": nd("uint8", []byte{0xff}, 1), "deep": l{nil, m{"z": nil}}}, "ok": true, "stop_condition": "done", "dropped": nil, "newer": "kept", "agent": m{"config": m{"max_turns": nil}, "runtime": nil},
		}},
	}
}

// TestDecodeRun_DropsPreview: what was in flight when the run ended is no part of its episode.
func TestDecodeRun_DropsPreview(t *testing.T) {
	deltas := packAll(t, append(ownRun(), m{"trace": "a", "pending": l{m{"role": "user", "content": "x"}}}))
	res, err := DecodeRun(deltas, pack(t, ownReply(nil)), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(line(t, res.Episode)); got != ownLine {
		t.Errorf("got %s", got)
	}
}

func ownReply(extra m) m {
	rep := m{
		"success": true, "error": nil, "hint": 1, "head": m{"id": "e", "env": m{"id": "env", "name": nil}, "task": m{"type": "T", "data": m{"idx": 1, "free": m{"a": nil}}}, "ok": true, "errors": l{}, "future": m{"n": nil}},
		"traces": l{m{"id": "a", "nodes": 2, "calls": 1}},
	}
	maps.Copy(rep, extra)
	return rep
}

func packAll(tb testing.TB, deltas []any) [][]byte {
	tb.Helper()
	var out [][]byte
	for _, d := range deltas {
		out = append(out, pack(tb, d))
	}
	return out
}

func ownEpisode(tb testing.TB) *Episode {
	tb.Helper()
	res, err := DecodeRun(packAll(tb, ownRun()), pack(tb, ownReply(nil)), false)
	if err != nil {
		tb.Fatal(err)
	}
	return res.Episode
}

// ownLine is what ownRun comes to on disk.
const ownLine = `{"id":"e","env":{"id":"env"},"task":{"type":"T","data":{"free":{"a":null},"idx":1}},"ok":true,"is_timeout":false,"errors":[],"traces":[` +
	`{"version":1,"id":"a","verifiers":{"version":"9"},"task":{"type":"T","data":{"free":{"a":null},"idx":1},"key":"k"},"agent":{"config":{"max_turns":null}},"tools":[],"nodes":[` +
	`{"semantic_parents":[{"node":1,"type":"summary"}],"message":{"role":"user","content":[{"text":"hi ","type":"text"},{"image_url":{"url":"u"},"type":"image_url"},{"text":"you","type":"text"}]},"sampled":false,"timestamp":1.0,"token_ids":[1,200,70000,-1],"mask":[],"is_content":[],"logprobs":[]},` +
	`{"parent":0,"semantic_parents":[],"message":{"role":"assistant","reasoning_content":"","tool_calls":[{"id":"c","type":"function","name":"f","arguments":"{}","odd":true}]},"sampled":true,"timestamp":2.5,"token_ids":[5,-1],"mask":[false,true],"is_content":[],"logprobs":[-0.125],"advantages":[1.0,0.5],"top_logprobs":[{"5":-0.5}]}],` +
	`"calls":[{"node":1,"model":"x","sampling":{"n":18446744073709551615},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":2,"cached_input_tokens":4,"cost":0.25,"audio_tokens":0},"time":{"start":1.0,"end":2.0},"retries":1}],` +
	`"mm_token_type_id_map":{},"request_rewrites":[],"response_rewrites":[],"rewards":{"nan":null,"none":null,"r":{"score":0.5,"weight":2.0,"why":"w"}},"metrics":{"inf":null,"n":2.0,"nil":null},"info":{"deep":[null,{"z":null}],"t":{"__nd__":true,"data":"/w==","dtype":"uint8","shape":[1]}},` +
	`"extra_usage":[],"is_completed":false,"ok":true,"stop_condition":"done","is_timeout":false,"errors":[],"timing":{},"num_input_tokens":0,"num_output_tokens":0,"num_total_tokens":0,"novel":{"x":1.0,"y":1},"newer":"kept"}],` +
	`"num_input_tokens":0,"num_output_tokens":0,"num_total_tokens":0,"future":{"n":null}}`

func TestDecodeRun_Own(t *testing.T) {
	e := ownEpisode(t)
	if got := string(line(t, e)); got != ownLine {
		t.Errorf("got %s\nwant %s", got, ownLine)
	}
	checkStable(t, []byte(ownLine))
	checkLegacy(t, e)
	repaired := e.Traces[0].Nodes[0].RoutedExperts.Map()
	if got := fmt.Sprint(repaired["dtype"], repaired["shape"], repaired["data"]); got != "uint16[2 2] [1 0 2 0 0 1 9 0]" {
		t.Errorf("repaired routing: got %s", got)
	}
	if u := e.Usage(); u.InputTokens != 7 || u.OutputTokens != 2 || u.Cost == nil || *u.Cost != 0.25 {
		t.Errorf("usage: got %+v", u)
	}
	if got := e.Traces[0].Nodes[0].Message.Content.String(); got != "hi you" {
		t.Errorf("text of parts: got %q", got)
	}
}

// TestDecodeRun_Aliasing: an episode outlives the buffers it came from.
func TestDecodeRun_Aliasing(t *testing.T) {
	deltas, reply := packAll(t, ownRun()), pack(t, ownReply(nil))
	res, err := DecodeRun(deltas, reply, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range append(deltas, reply) {
		for i := range b {
			b[i] = 0xc1
		}
	}
	if got := string(line(t, res.Episode)); got != ownLine {
		t.Errorf("got %s", got)
	}
}

func TestDecodeRun_Failure(t *testing.T) {
	res, err := DecodeRun(nil, pack(t, m{"success": false, "error": "ValidationError: x"}), false)
	if err != nil || res.Success || res.Error != "ValidationError: x" || res.Episode != nil {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestDecodeRun_ProtocolErrors(t *testing.T) {
	bad := func(i int, d any) []any {
		run := ownRun()
		run[i] = d
		return run
	}
	node := func(fields m) m {
		n := m{"message": m{"role": "user", "content": "x"}}
		maps.Copy(n, fields)
		return m{"trace": "a", "nodes": l{n, n}}
	}
	rows := []struct {
		name   string
		deltas []any
		reply  any
		want   string
	}{
		{"missing trace", ownRun()[:2], ownReply(nil), `wire: reply: traces[0]: want a trace that deltas brought (1 did), got "a"`},
		{"fewer nodes", ownRun(), ownReply(m{"traces": l{m{"id": "a", "nodes": 3, "calls": 1}}}), "wire: reply: traces[0]: want 3 nodes and 1 calls, got 2 and 1 from the deltas"},
		{"more calls", ownRun(), ownReply(m{"traces": l{m{"id": "a", "nodes": 2, "calls": 0}}}), "wire: reply: traces[0]: want 2 nodes and 0 calls, got 2 and 1 from the deltas"},
		{"discarded trace", ownRun(), ownReply(m{"traces": l{m{"id": "gone", "nodes": 0, "calls": 1}}}), `wire: reply: traces[0]: want a trace that deltas brought (1 did), got "gone"`},
		{"never opened", []any{m{"trace": "b", "set": m{"ok": true}}}, ownReply(nil), `wire: delta 0: open: want a trace that was opened, got "b"`},
		{"no trace id", []any{m{"set": m{}}}, ownReply(nil), "wire: delta 0: trace: want a trace's id, got a map of 1"},
		{"no map", []any{l{1}}, ownReply(nil), "wire: delta 0: trace: want a trace's id, got a list of 1"},
		{"reply no map", ownRun(), l{}, "wire: reply: want a map with success, got a list of 0"},
		{"reply without success", ownRun(), m{"error": nil}, "wire: reply: success: want a bool, got a map of 1"},
		{"no head", ownRun(), m{"success": true}, "wire: reply: head: want an episode, got none"},
		{"role", bad(5, m{"trace": "a", "nodes": l{m{"message": m{"role": "user"}}, m{"message": m{"role": 7}}}}), ownReply(nil), "wire: delta 5: nodes[1].message.role: want a string, got 7"},
		{"content", bad(5, node(m{"message": m{"role": "user", "content": 1.5}})), ownReply(nil), "wire: delta 5: nodes[0].message.content: want a text or a list of parts, got 1.5"},
		{"nil node", bad(5, m{"trace": "a", "nodes": l{nil}}), ownReply(nil), "wire: delta 5: nodes[0]: want a node with a message, got null"},
		{"token id too large", bad(5, node(m{"token_ids": l{1, 1 << 40}})), ownReply(nil), "wire: delta 5: nodes[0].token_ids[1]: want a 32-bit token id, got 1099511627776"},
		{"uint64 as index", bad(5, node(m{"parent": uint64(math.MaxUint64)})), ownReply(nil), "wire: delta 5: nodes[0].parent: want a 64-bit signed integer, got 18446744073709551615"},
		{"negative index", bad(5, node(m{"parent": -1})), ownReply(nil), "wire: delta 5: nodes[0].parent: want an index, got -1"},
		{"mask of ints", bad(5, node(m{"mask": l{1}})), ownReply(nil), "wire: delta 5: nodes[0].mask[0]: want a bool, got 1"},
		{"tensor size", bad(5, node(m{"mask": nd("bool", []byte{1}, 2)})), ownReply(nil), "wire: delta 5: nodes[0].mask: want a tensor whose dtype, shape and 1 bytes of data agree, got a map of 4"},
		{"tensor shape overflow", bad(5, node(m{"mask": nd("bool", []byte{1}, 1<<62, 4)})), ownReply(nil), "wire: delta 5: nodes[0].mask: want a tensor whose dtype, shape and 1 bytes of data agree, got a map of 4"},
		{"tensor dtype", bad(5, node(m{"token_ids": nd("float32", []byte{0, 0, 0, 0}, 1)})), ownReply(nil), "wire: delta 5: nodes[0].token_ids: want a tensor of another dtype, got a map of 4"},
		{"link to nowhere", bad(6, m{"trace": "a", "links": map[int]any{9: l{}}}), ownReply(nil), "wire: delta 6: links: want a node below 2, got 9"},
		{"repair without routing", bad(6, m{"trace": "a", "routing_repairs": map[int]any{1: nd("uint8", []byte{1, 2}, 1, 2)}}), ownReply(nil), "wire: delta 6: routing_repairs[1]: row of shape [1 2] does not fit routing of shape []"},
		{"rewards", bad(7, m{"trace": "a", "set": m{"rewards": m{"r": "high"}}}), ownReply(nil), `wire: delta 7: set.rewards.r: want a map, got "high"`},
	}
	for _, row := range rows {
		_, err := DecodeRun(packAll(t, row.deltas), pack(t, row.reply), false)
		var pe *ProtocolError
		if !errors.As(err, &pe) || err.Error() != row.want {
			t.Errorf("%s: got %v\nwant %s", row.name, err, row.want)
			continue
		}
		f := failure.Of(err)
		if f.Source != failure.Server || f.Kind != "protocol" || f.Retryable || f.Message != "server speaks a newer protocol: "+row.want {
			t.Errorf("%s: failure %v, want server: protocol", row.name, f)
		}
	}
	if _, err := DecodeRun(nil, pack(t, m{"success": true}), true); err == nil || !strings.Contains(err.Error(), "episode: want an episode") {
		t.Errorf("two frames without an episode: got %v", err)
	}
}

func TestDecodePartial_BestEffort(t *testing.T) {
	deltas := packAll(t, ownRun()[:6])
	deltas = append(deltas, []byte{0xc1}, pack(t, m{"trace": "a", "pending": l{m{"role": "tool", "content": "r", "tool_call_id": "c"}}}))
	got := DecodePartial(deltas)
	if len(got) != 1 || got[0].ID != "a" || len(got[0].Nodes) != 2 || len(got[0].Pending) != 1 {
		t.Errorf("got %+v", got)
	}
	if got := DecodePartial(nil); len(got) != 0 {
		t.Errorf("got %v of nothing", got)
	}
}

func TestDecodeHealth(t *testing.T) {
	if err := DecodeHealth(EncodeOK(nil)); err != nil {
		t.Error(err)
	}
	if err := DecodeHealth(pack(t, m{"success": true})); err != nil { // older servers
		t.Error(err)
	}
	if f := failure.Of(DecodeHealth(EncodeFailure("RuntimeError: x"))); f == nil || f.Kind != "peer_error" {
		t.Errorf("got %v, want peer_error", f)
	}
	if f := failure.Of(DecodeHealth([]byte{0xc1})); f == nil || f.Kind != "protocol" || strings.Contains(f.Message, "newer") {
		t.Errorf("got %v, want protocol, of broken bytes", f)
	}
	if on, err := DecodeCancelReply(EncodeOK(m{"cancelled": true})); !on || err != nil {
		t.Errorf("got %v, %v", on, err)
	}
}

func TestErrors_ZeroValues(t *testing.T) {
	for _, err := range []error{&ProtocolError{}, &ValidationError{}, &FormatError{}} {
		if err.Error() == "" {
			t.Errorf("%T: zero value has no text", err)
		}
	}
}
