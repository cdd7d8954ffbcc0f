package plugin

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/scan"
	"github.com/wevalr/wevalr/plugins/abi"
)

func TestValues_AreCounted(t *testing.T) {
	for _, tc := range []struct {
		v                   any
		jsonCount, msgCount int
	}{
		{1, 1, 1},
		{[]any{1, 2, 3}, 4, 4},
		{map[string]any{"a": []any{"x,[", `q"\`}, "b": nil}, 7, 7},
		{[]any{-1, -200, 300, 70_000, 1 << 40, -70_000, -1 << 40, 1.5, true, strings.Repeat("y", 40), strings.Repeat(`",`, 300), strings.Repeat("z", 1<<17)}, 13, 13},
		{strings.Repeat("[", 1<<17), 1, 1},
		{[]any{make([]byte, 9), make([]any, 20), make([]any, 1<<16)}, 0, 4 + 20 + 1<<16},
	} {
		if b, err := json.Marshal(tc.v); tc.jsonCount > 0 && (err != nil || valuesOfJSON(b) != tc.jsonCount) {
			t.Errorf("%.60s: %d values, want %d (%v)", b, valuesOfJSON(b), tc.jsonCount, err)
		}
		b, err := msgpack.Marshal(tc.v)
		if err == nil {
			err = scan.Check(b, scan.Limits{})
		}
		if got := valuesOfMsgpack(b); err != nil || got != tc.msgCount {
			t.Errorf("%.40q: %d values, want %d (%v)", b, got, tc.msgCount, err)
		}
	}
}

func TestDecodeFields_ManyValues(t *testing.T) {
	long := `{"ok":[` + strings.Repeat("1,", abi.MaxResponse+1) + `1]}`
	if _, err := decodeFields(abi.EncodingJSON, []byte(long)); err == nil || !strings.Contains(err.Error(), "values") {
		t.Errorf("got %v, want too many values", err)
	}
	text := `{"ok":"` + strings.Repeat("1,", abi.MaxResponse+1) + `"}`
	if _, err := decodeFields(abi.EncodingJSON, []byte(text)); err != nil {
		t.Errorf("text: %v", err)
	}
}

// A task may be as long as a request: its page, and the scoring request that carries it to a hand-made
// guest and to a Go guest. A score may not.
func TestTasks_LongPrompt(t *testing.T) {
	const n = 24 << 20
	g := &guest{Manifest: "provides = [\"task/v1\", \"scorer/v1\"]\n[[scorer]]\nname = \"any\"\n", Pages: [2]int{1000, 1024}}
	head, _ := g.Put(`{"ok":{"tasks":[{"key":"long","data":{"prompt":"`)
	at := int32(dataAt + len(g.Data))
	const tail = `"}}]}}`
	place := cat(i32c(at), i32c('x'), i32c(n), op(0xfc, 0x0b, 0)) // memory.fill
	for i := range len(tail) {
		place = cat(place, i32c(at+n+int32(i)), i32c(int32(tail[i])), op(0x3a, 0, 0))
	}
	g.Body = cat(place, i64c(int64(head)<<32|int64(at+n+int32(len(tail))-head)))
	small := &guest{Manifest: g.Manifest, Pages: [2]int{1000, 1024}}
	small.Body = small.Answer(score("1"))
	e := newEngine(t)
	p := load(t, e, Spec{Source: source(t, g.Bytes())})
	tasks := allTasks(t, p)
	if len(tasks) != 1 || len(tasks[0].Data["prompt"].(string)) != n {
		t.Fatalf("%d tasks, want one of %d bytes", len(tasks), n)
	}
	if _, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"}); err == nil || !strings.Contains(err.Error(), "over the limit of 8 MiB") {
		t.Errorf("a score of 24 MiB: got %v, want a refusal", err)
	}
	q := load(t, e, Spec{Source: source(t, small.Bytes())})
	if got := scoreOf(t, q, "any", tasks[0], "42"); got != 1 {
		t.Errorf("score %v, want 1", got)
	}
	needBuild(t)
	tasks[0].Target = "42"
	m := load(t, e, Spec{Source: filepath.Join(hosttest.Root(t), "plugins/exact-match")})
	if got := scoreOf(t, m, "match", tasks[0], "42"); got != 1 {
		t.Errorf("exact-match: %v, want 1", got)
	}
}

// What is wrong deep inside is said in few words: to copy the way to it at each step took minutes.
func TestPlain_DeepInside(t *testing.T) {
	const depth = 50
	deep := strings.Repeat(`{"`+long(1000)+`":`, depth) + "1e999" + strings.Repeat("}", depth)
	digits := "1" + strings.Repeat("0", 50_000)
	for name, text := range map[string]string{
		"metadata": `{"ok":{"scores":[{"value":1,"metadata":` + deep + `}]}}`,
		"number":   `{"ok":{"scores":[{"value":` + digits + `}]}}`,
		"inside":   `{"ok":{"scores":[{"value":1,"metadata":{"n":` + digits + `e999}}]}}`,
	} {
		g := scoring(text)
		g.Buf, g.Pages = i32c(40<<16), [2]int{64, 64}
		p := loadGuest(t, g)
		_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"})
		checkFailure(t, err, "response", "")
		if n := len(err.Error()); n > 3*maxErrorText {
			t.Errorf("%s: %d bytes of text", name, n)
		}
	}
}

// Both encodings bound containers alike.
func TestDecodeFields_Containers(t *testing.T) {
	nested := func(n int) (string, []byte) {
		return `{"a]":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `,"b\"[":1}`,
			[]byte("\x81\xa1a" + strings.Repeat("\x91", n-1) + "\x90")
	}
	many := func(n int) (string, []byte) {
		return `{"a":[` + strings.Repeat("{},", n) + `1]}`,
			append(binary.BigEndian.AppendUint32([]byte("\x81\xa1a\xdd"), uint32(n)), strings.Repeat("\x80", n)...)
	}
	for _, tc := range []struct {
		make func(int) (string, []byte)
		most int
	}{{nested, scan.MaxDepth - 1}, {many, scan.DefaultContainers - 2}} {
		for _, more := range []int{0, 1} {
			text, packed := tc.make(tc.most + more)
			for encoding, b := range map[string][]byte{abi.EncodingJSON: []byte(text), abi.EncodingMsgpack: packed} {
				if _, err := decodeFields(encoding, b); (err == nil) != (more == 0) {
					t.Errorf("%s: %d and %d: %v", encoding, tc.most, more, err)
				}
			}
		}
	}
}
