package wire

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/internal/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// traffic is the folder of recorded traffic.
const traffic = "fixtures/verifiers-0.4"

func read(tb testing.TB, dir, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// exchange reads the deltas and the reply of one recorded run.
func exchange(tb testing.TB, dir, name string) (deltas [][]byte, reply []byte) {
	tb.Helper()
	for i := 0; ; i++ {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s.delta.%d.msgpack", name, i)))
		if err != nil {
			break
		}
		deltas = append(deltas, b)
	}
	return deltas, read(tb, dir, name+".reply.msgpack")
}

// golden reads JSON that stands for msgpack: {"$bytes_b64"} is bin, and tensors in the place of
// token streams are lists.
func golden(tb testing.TB, text []byte) any {
	tb.Helper()
	b, err := fromJSON(nil, text)
	if err != nil {
		tb.Fatal(err)
	}
	return plain(Value(b).Any())
}

func plain(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		if s, ok := v["$bytes_b64"].(string); ok {
			b, _ := base64.StdEncoding.DecodeString(s)
			return b
		}
		for k := range v {
			v[k] = plain(v[k])
		}
		for _, k := range []string{"token_ids", "mask", "is_content", "logprobs"} {
			if m, ok := v[k].(map[string]any); ok && m["__nd__"] == true {
				v[k] = unpacked(m)
			}
		}
	}
	return v
}

func unpacked(m map[string]any) []any {
	out := []any{}
	t := tensor{dtype: m["dtype"].(string), data: m["data"].([]byte)}
	for i := range t.len() {
		switch n, _ := t.int(i); t.dtype {
		case "bool":
			out = append(out, n != 0)
		case "int32":
			out = append(out, n)
		default:
			f, _ := t.float(i)
			out = append(out, f)
		}
	}
	return out
}

// differ compares decoded trees. A nil field is as good as none, but not in free maps, where nil is
// a value.
func differ(path string, got, want any, free bool) []string {
	g, gok := got.(map[string]any)
	w, wok := want.(map[string]any)
	if gok && wok {
		var out []string
		for k := range merged(g, w) {
			gv, gin := g[k]
			wv, win := w[k]
			if !free && gv == nil && wv == nil {
				continue
			}
			if gin != win {
				out = append(out, fmt.Sprintf("%s.%s: got %v, want %v", path, k, gv, wv))
				continue
			}
			inner := free || k == "rewards" || k == "metrics" || k == "info" || k == "config" || k == "timing"
			out = append(out, differ(path+"."+k, gv, wv, inner)...)
		}
		return out
	}
	gl, gok := got.([]any)
	wl, wok := want.([]any)
	if gok && wok && len(gl) == len(wl) {
		var out []string
		for i := range gl {
			out = append(out, differ(fmt.Sprintf("%s[%d]", path, i), gl[i], wl[i], free)...)
		}
		return out
	}
	if !reflect.DeepEqual(got, want) {
		return []string{fmt.Sprintf("%s: got %T %v, want %T %v", path, got, got, want, want)}
	}
	return nil
}

func merged(a, b map[string]any) map[string]bool {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}

// onDisk is what of a golden episode goes into JSON: no raw tensors, bytes as base64.
func onDisk(v any) any {
	switch v := v.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case []any:
		for i := range v {
			v[i] = onDisk(v[i])
		}
	case map[string]any:
		delete(v, "routed_experts")
		delete(v, "sampling_mask")
		for k := range v {
			v[k] = onDisk(v[k])
		}
	}
	return v
}

func line(tb testing.TB, e *Episode) []byte {
	tb.Helper()
	b, err := e.AppendJSON(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// wireForm is the whole episode in msgpack.
func wireForm(e *Episode) Value {
	var s sink
	e.encode(&s, true)
	return s.b
}

func TestDecodeRun_Recorded(t *testing.T) {
	root := hosttest.Shared(t, traffic)
	seen := 0
	for _, dir := range []string{root, filepath.Join(root, "0.4.1.dev86")} {
		files, _ := filepath.Glob(filepath.Join(dir, "*.episode.json"))
		for _, file := range files {
			seen++
			name := strings.TrimSuffix(filepath.Base(file), ".episode.json")
			t.Run(filepath.Base(dir)+"/"+name, func(t *testing.T) {
				deltas, reply := exchange(t, dir, name)
				res, err := DecodeRun(deltas, reply, false)
				if err != nil {
					t.Fatal(err)
				}
				if !res.Success || res.Error != "" {
					t.Fatalf("got %+v, want success", res)
				}
				want := read(t, dir, name+".episode.json")
				for _, d := range differ("", wireForm(res.Episode).Any(), golden(t, want), false) {
					t.Errorf("msgpack: %s", d)
				}
				text := line(t, res.Episode)
				for _, d := range differ("", golden(t, text), onDisk(golden(t, want)), false) {
					t.Errorf("json: %s", d)
				}
				checkStable(t, text)
				checkLegacy(t, res.Episode)
			})
		}
	}
	if seen < 18 {
		t.Errorf("got %d recorded episodes, want at least 18", seen)
	}
}

// checkStable: what was written reads back and is written the same.
func checkStable(t *testing.T, text []byte) {
	t.Helper()
	e, err := ParseEpisode(text)
	if err != nil {
		t.Fatal(err)
	}
	if again := line(t, e); !bytes.Equal(again, text) {
		t.Errorf("JSON → Go → JSON: got %s\nwant %s", again, text)
	}
}

// checkLegacy sends the episode as an older server would, whole and in two frames.
func checkLegacy(t *testing.T, e *Episode) {
	t.Helper()
	b := appendMapLen(nil, 3)
	b = appendBool(appendStr(b, "success"), true)
	b = append(appendStr(b, "error"), 0xc0)
	b = append(appendStr(b, "episode"), wireForm(e)...)
	res, err := DecodeRun(nil, b, true)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := wireForm(res.Episode), wireForm(e); !bytes.Equal(got, want) {
		t.Errorf("two-frame answer: got %v, want %v", got.Any(), want.Any())
	}
}

func TestParseEpisode_Recorded(t *testing.T) {
	n := 0
	for l := range bytes.Lines(read(t, hosttest.Shared(t, traffic), "traces.jsonl")) {
		n++
		l = bytes.TrimSuffix(l, []byte("\n"))
		e, err := ParseEpisode(l)
		if err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		if got := line(t, e); !bytes.Equal(got, l) {
			t.Errorf("line %d: got %s\nwant %s\n%v", n, got, l, differ("", golden(t, got), golden(t, l), true))
		}
	}
	if n != 8 {
		t.Errorf("got %d lines, want 8", n)
	}
}

func TestOutcome_Recorded(t *testing.T) {
	dir := hosttest.Shared(t, traffic)
	rows := []struct{ name, want string }{
		{"run_ok", "completed"},
		{"run_ok_wrong", "completed"},
		{"run_multiturn", "completed"},
		{"run_best_of_n", "completed"},
		{"run_model_error_500", "error model unavailable true"},
		{"run_model_error_garbage", "error model unavailable true"},
		{"run_model_unreachable", "error model unavailable true"},
		{"run_task_error_setup", "error server task_error false"},
		{"run_task_error_reward", "error server task_error false"},
		{"run_retry_discard", "error model unavailable true"},
	}
	for _, row := range rows {
		deltas, reply := exchange(t, dir, row.name)
		res, err := DecodeRun(deltas, reply, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := outcome(res.Episode); got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
		if res.Episode.Refused() {
			t.Errorf("%s: is marked as a refusal", row.name)
		}
	}
}

func outcome(e *Episode) string {
	o, f := e.Outcome()
	if f == nil {
		return string(o)
	}
	return fmt.Sprint(o, " ", f.Source, " ", f.Kind, " ", f.Retryable)
}

func TestDecodePartial_Recorded(t *testing.T) {
	deltas, reply := exchange(t, hosttest.Shared(t, traffic), "cancel_inflight")
	res, err := DecodeRun(deltas, reply, false)
	if err != nil || res.Success || res.Error != "Cancelled: rollout aborted" {
		t.Fatalf("got %+v, %v", res, err)
	}
	part := DecodePartial(deltas)
	if len(part) != 1 || len(part[0].Pending) != 2 || len(part[0].Nodes) != 0 {
		t.Fatalf("got %+v, want one trace with two pending messages", part)
	}
	if text := part[0].AppendJSON(nil); !bytes.Contains(text, []byte(`"pending":[{"role":"system","content":"Be brief."}`)) {
		t.Errorf("got %s", text)
	}
	deltas, _ = exchange(t, hosttest.Shared(t, traffic), "run_retry_discard")
	if part := DecodePartial(deltas); len(part) != 1 {
		t.Errorf("retries: got %d traces, want the one that was not discarded", len(part))
	}
}

// TestEncode_Recorded holds the server side against the real server's bytes.
func TestEncode_Recorded(t *testing.T) {
	dir := hosttest.Shared(t, traffic)
	same := func(name string, got []byte) {
		t.Helper()
		if want := read(t, dir, name+".msgpack"); !bytes.Equal(got, want) {
			t.Errorf("%s: got %v\nwant %v", name, Value(got).Any(), Value(want).Any())
		}
	}
	refusal := func(name string, cancel bool) {
		t.Helper()
		payload := read(t, dir, name+".request.msgpack")
		_, err := DecodeRunRequest(payload)
		if cancel {
			_, err = DecodeCancel(payload)
		}
		if err == nil {
			t.Fatalf("%s: accepted", name)
		}
		same(name+".reply", EncodeFailure(err.Error()))
	}
	same("health.request", EncodeHealth())
	same("health.reply", EncodeOK(nil))
	same("cancel_unknown.reply", EncodeOK(map[string]any{"cancelled": false}))
	same("cancel_inflight.reply1", EncodeOK(map[string]any{"cancelled": true}))
	same("cancel_inflight.reply", EncodeFailure("Cancelled: rollout aborted"))
	same("unknown_method.reply", EncodeFailure("unknown method 'bogus'"))
	id, err := DecodeCancel(read(t, dir, "cancel_unknown.request.msgpack"))
	if err != nil {
		t.Fatal(err)
	}
	same("cancel_unknown.request", EncodeCancel(id))
	refusal("run_bad_request", false)
	refusal("bad_shape", false)
	refusal("bad_msgpack", false)
	refusal("cancel_bad", true)
	for _, name := range []string{"run_ok", "run_extra_fields", "run_train_tokens", "run_tool"} {
		if _, err := DecodeRunRequest(read(t, dir, name+".request.msgpack")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	invalid := failureText(t, read(t, dir, "run_task_invalid.reply.msgpack"))
	task := &ValidationError{Model: "WevData"}
	task.Add("answer", "Field required", "missing", map[string]any{"prompt": "no answer field"})
	if task.Error() != invalid {
		t.Errorf("got %s\nwant %s", task, invalid)
	}
	if f := PeerFailure(invalid); f.Kind != "refused" {
		t.Errorf("got %v, want refused", f)
	}

	deltas, reply := exchange(t, dir, "run_ok")
	res, err := DecodeRun(deltas, reply, false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := EncodeRunReply(res.Episode)
	if err != nil {
		t.Fatal(err)
	}
	same("run_ok.reply", got)
	tr := &res.Episode.Traces[0]
	same("run_ok.delta.2", Delta{
		Trace: tr.ID, Nodes: tr.Nodes, Calls: tr.Calls, Set: tr,
		Fields: []string{"num_input_tokens", "num_output_tokens", "num_total_tokens"},
	}.Encode())
	same("run_ok.delta.4", Delta{Trace: tr.ID, Set: tr, Fields: []string{"rewards", "metrics", "ok", "timing"}}.Encode())
	same("run_ok.delta.1", Delta{Trace: tr.ID, Pending: []Message{tr.Nodes[0].Message, tr.Nodes[1].Message}}.Encode())
	opened := DecodePartial(deltas[:1])[0]
	same("run_ok.delta.0", Delta{Trace: tr.ID, Open: &opened, Set: &opened}.Encode())
}

// failureText is the text of a reply that says no.
func failureText(t *testing.T, payload []byte) string {
	t.Helper()
	res, err := DecodeRun(nil, payload, false)
	if err != nil || res.Success {
		t.Fatalf("got %+v, %v", res, err)
	}
	return res.Error
}
