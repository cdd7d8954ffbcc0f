package envserver

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
)

func ask(prompt string, tag *wire.Tag) *call {
	return &call{messages: []message{{role: "system", content: "1 + 1"}, {role: "user", content: prompt}}, tag: tag}
}

func TestDemo_Answers(t *testing.T) {
	m, err := newOffline("offline/demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string]string{
		"What is 2 + 3?":                              "5",
		"What is 17 − 40?":                            "-23",
		"What is 17 - 40?":                            "-23",
		"What is −6 × 7?":                             "-42",
		"What is 6*7?":                                "42",
		"What is 99999999999999999999 + 1?":           "100000000000000000000",
		"What is 1 + 2?\nAnswer with a number. 2 x 3": "6",
		"Why?": "I can only add, subtract and multiply two numbers.",
	} {
		got, tries, err := m.complete(t.Context(), ask(prompt, nil))
		if err != nil || tries != 1 || got.message.content != want || got.finish != "stop" {
			t.Errorf("%q: got %v, %d, %v, want %q", prompt, got.message.content, tries, err, want)
		}
	}
}

func TestDemo_WrongRate(t *testing.T) {
	m, err := newOffline("offline/demo", map[string]any{"wrong_rate": 0.25})
	if err != nil {
		t.Fatal(err)
	}
	answers := func() (out []string) {
		for i := range 2000 {
			got, _, err := m.complete(t.Context(), ask("What is 20 + 22?", &wire.Tag{Key: "k", Index: i, Seed: int64(i) * 7}))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, got.message.content.(string))
		}
		return out
	}
	first, second := answers(), answers()
	wrong := 0
	for i := range first {
		if first[i] != second[i] {
			t.Fatalf("rollout %d: got %s, then %s: the seed does not decide", i, first[i], second[i])
		}
		if first[i] != "42" {
			wrong++
		}
	}
	if wrong < 400 || wrong > 600 {
		t.Errorf("got %d wrong of 2000, want about 500", wrong)
	}
}

func TestDemo_LatencyIsCancellable(t *testing.T) {
	m, err := newOffline("offline/demo", map[string]any{"latency": "1h"})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(cause) })
	if _, _, err := m.complete(ctx, ask("What is 1 + 1?", nil)); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cancel's cause", err)
	}
}

func TestNewOffline_Refuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		options map[string]any
		want    string
	}{
		{"offline/nope", nil, "no such model"},
		{"offline/echo", map[string]any{"x": 1}, "takes none"},
		{"offline/demo", map[string]any{"wrongrate": 0.5}, "option wrongrate is unknown"},
		{"offline/demo", map[string]any{"wrong_rate": 1.5}, "from 0 to 1"},
		{"offline/demo", map[string]any{"latency": "soon"}, "latency"},
		{"offline/demo", map[string]any{"latency": "-1s"}, "latency"},
		{"offline/replay", nil, "option file is missing"},
		{"offline/replay", map[string]any{"file": filepath.Join(t.TempDir(), "none.jsonl")}, "no such file"},
	} {
		if _, err := newOffline(c.name, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: got %v, want …%s…", c.name, c.options, err, c.want)
		}
	}
}

func writeReplay(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "replay.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplay(t *testing.T) {
	path := writeReplay(t, `{"key":"a","completion":"every a"}
{"key":"a","index":1,"completion":"a, the second"}

{"key":"b","index":0,"completion":"","note":"ignored"}
{"key":"long","completion":"`+strings.Repeat("x", 200_000)+`"}
{"key":"last","completion":"no newline"}`)
	r, err := openReplay(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, c := range []struct {
		tag  wire.Tag
		want string
	}{
		{wire.Tag{Key: "a"}, "every a"},
		{wire.Tag{Key: "a", Index: 1}, "a, the second"},
		{wire.Tag{Key: "a", Index: 2}, "every a"},
		{wire.Tag{Key: "b"}, ""},
		{wire.Tag{Key: "long"}, strings.Repeat("x", 200_000)},
		{wire.Tag{Key: "last"}, "no newline"},
	} {
		got, _, err := r.complete(t.Context(), ask("", &c.tag))
		if err != nil || got.message.content != c.want {
			t.Errorf("%+v: got %.40q, %v, want %.40q", c.tag, got.message.content, err, c.want)
		}
	}
	for _, c := range []struct {
		tag  *wire.Tag
		want string
	}{
		{&wire.Tag{Key: "b", Index: 1}, `offline/replay: "b" index 1 is not recorded in ` + path},
		{nil, "names no task"},
	} {
		_, _, err := r.complete(t.Context(), ask("", c.tag))
		var failed *callError
		if !errors.As(err, &failed) || failed.status != 404 || !strings.Contains(failed.msg, c.want) {
			t.Errorf("%+v: got %v, want 404 …%s…", c.tag, err, c.want)
		}
	}
}

func TestReplay_ChangedFile(t *testing.T) {
	path := writeReplay(t, `{"key":"a","completion":"one"}`+"\n")
	r, err := openReplay(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.WriteFile(path, []byte(`{"key":"b","completion":"two"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var failed *callError
	if _, _, err := r.complete(t.Context(), ask("", &wire.Tag{Key: "a"})); !errors.As(err, &failed) || failed.status != 410 {
		t.Errorf("got %v, want 410", err)
	}
}

func TestOpenReplay_BadLine(t *testing.T) {
	good := `{"key":"a","completion":"x"}` + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"garbage":       {good + "garbage\n", ":2: invalid character"},
		"torn":          {good + good[:9], ":2: unexpected end"},
		"no key":        {`{"completion":"x"}`, ":1: key is missing"},
		"no completion": {`{"key":"x"}`, ":1: completion is missing"},
		"null":          {`{"key":"x","completion":null}`, ":1: completion is missing"},
		"number":        {`{"key":"x","completion":3}`, ":1: json:"},
		"twice":         {good + "\n" + good, `:3: "a" is recorded twice, first in line 1`},
		"negative":      {`{"key":"x","index":-1,"completion":"x"}`, ":1: index -1 is negative"},
	} {
		path := writeReplay(t, c.text)
		if _, err := openReplay(path); err == nil || !strings.Contains(err.Error(), path+c.want) {
			t.Errorf("%s: got %v, want …%s…", name, err, c.want)
		}
	}
}

// TestReplay_RealCompletions serves every published solution of a real model as it is in its file.
func TestReplay_RealCompletions(t *testing.T) {
	path := hosttest.Shared(t, "data/gsm8k/replay-175b_verification.jsonl")
	r, err := openReplay(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		var want struct{ Key, Completion string }
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		got, _, err := r.complete(t.Context(), ask("", &wire.Tag{Key: want.Key, Index: n % 4}))
		if err != nil || got.message.content != want.Completion {
			t.Fatalf("%s: got %v, %v, want %q", want.Key, got.message.content, err, want.Completion)
		}
		n++
	}
	if n != 1319 {
		t.Errorf("got %d lines, want the 1319 of the data set", n)
	}
}
