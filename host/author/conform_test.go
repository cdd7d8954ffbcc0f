package author

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/hostile"
)

// The Go SDK passes the kit, with the plugin that uses every part of the ABI and with a plain one.
func TestConform_GoSDK(t *testing.T) {
	for name, b := range map[string][]byte{"conform-go": conformModule(t), "template": scorerModule(t)} {
		got, err := Conform(t.Context(), onDisk(t, b))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := got.Text(&text); err != nil || got.Failed > 0 {
			t.Errorf("%s: %v\n%s", name, err, text.String())
		}
		for _, part := range []string{"runaways", "worldly"} {
			if r := find(t, got, "hostile: "+part); r.Status != Pass || !strings.Contains(r.Detail, "modules") {
				t.Errorf("%s: got %+v", name, r)
			}
		}
		if story := strings.Contains(text.String(), "conform: drive parallel"); story != (name == "conform-go") {
			t.Errorf("%s: the story's cases: %v", name, story)
		}
	}
}

// A plugin that answers otherwise after a hostile module fails, and so does a host that lets one through.
func TestConform_BesideHostile(t *testing.T) {
	needBuild(t)
	g, err := openGuest("m", module(t, "../../plugins/arith"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close(t.Context())
	calls := 0
	got, err := g.besideHostile(t.Context(), scripted(func(abi.Op, []byte) ([]byte, error) {
		calls++
		if calls == 3 {
			return []byte("changed"), nil
		}
		return []byte("as ever"), nil
	}))
	if err != nil || len(got) < 2 || got[0].Status != Fail || !strings.Contains(got[0].Detail, "changed") || got[1].Status != Pass {
		t.Errorf("got %+v, %v", got, err)
	}
	harmless := hostile.Module{Wasm: hostile.Modules()[0].Wasm, Loads: true, Within: time.Hour, Op: abi.OpScore}
	if err := g.attack(t.Context(), &harmless, t.TempDir(), ""); err == nil {
		t.Error("a runaway that should be harmless: got no error")
	}
}

// A module that does not do what it says fails.
func TestConform_FindsMistakes(t *testing.T) {
	needBuild(t)
	for name, c := range map[string]struct{ file, was, now, fails string }{
		"count":   {"main.go", "TaskCount: func() (int, error) { return p.tasks, nil }", "TaskCount: func() (int, error) { return 3, nil }", "init"},
		"key":     {"main.go", `"sum-" +`, `"../" +`, "tasks"},
		"options": {"plugin.toml", "type    = \"int\"\ndefault = 10", "type    = \"string\"\ndefault = \"x\"", "init"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newPlugin(t, "go", "task")
			edit(t, filepath.Join(dir, c.file), c.was, c.now)
			got, err := Conform(t.Context(), onDisk(t, module(t, dir)))
			if err != nil {
				t.Fatal(err)
			}
			if r := find(t, got, c.fails); r.Status != Fail || got.Failed == 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestConform_Refused(t *testing.T) {
	got, err := Conform(t.Context(), onDisk(t, []byte("hello")))
	if err != nil || got.Failed != 1 || !strings.Contains(got.Cases[0].Detail, "WV001") {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := Conform(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no file: got no error")
	}
}

// scripted is a rawCaller that answers as it is told.
type scripted func(op abi.Op, request []byte) ([]byte, error)

func (f scripted) CallRaw(_ context.Context, op abi.Op, request []byte) ([]byte, uint64, time.Duration, error) {
	b, err := f(op, request)
	return b, 1 << 20, time.Millisecond, err
}

func TestRawCase(t *testing.T) {
	g := &guest{in: &plugin.Inspection{Manifest: &plugin.Manifest{Encoding: abi.EncodingJSON}}}
	always := func(s string, err error) scripted {
		return func(abi.Op, []byte) ([]byte, error) { return []byte(s), err }
	}
	calls := 0
	for name, c := range map[string]struct {
		raw    scripted
		check  rawCheck
		status string
	}{
		"ok":        {always(`{"ok":{}}`, nil), rawCheck{want: "ok"}, Pass},
		"err":       {always(`{"err":{"code":"c"}}`, nil), rawCheck{want: "err"}, Pass},
		"wrong way": {always(`{"ok":{}}`, nil), rawCheck{want: "err"}, Fail},
		"no answer": {always(`[]`, nil), rawCheck{}, Fail},
		"trap":      {always("", &plugin.TrapError{}), rawCheck{roomy: true}, Fail},
		"no memory": {always("", &plugin.LimitError{Kind: "memory"}), rawCheck{roomy: true}, Pass},
		"no room":   {always("", &plugin.ResponseError{Msg: "wevalr_buf has no room"}), rawCheck{roomy: true}, Pass},
		"too small": {always("", &plugin.LimitError{Kind: "memory"}), rawCheck{}, Fail},
		"unstable": {func(abi.Op, []byte) ([]byte, error) {
			calls++
			return json.Marshal(map[string]any{"ok": calls})
		}, rawCheck{}, Fail},
		"greased differs": {func(_ abi.Op, q []byte) ([]byte, error) { return json.Marshal(map[string]any{"ok": len(q)}) }, rawCheck{request: []byte("ab"), as: []byte("a")}, Fail},
		"second fails": {func(_ abi.Op, q []byte) ([]byte, error) {
			if len(q) == 0 {
				return nil, errors.New("no")
			}
			return []byte(`{"ok":1}`), nil
		}, rawCheck{request: []byte("ab"), as: []byte{}}, Fail},
	} {
		if got := g.rawCase(t.Context(), c.raw, c.check); got.Status != c.status {
			t.Errorf("%s: got %+v, want %s", name, got, c.status)
		}
	}
}

// The requests of the kit are what they claim to be.
func TestRawCases(t *testing.T) {
	for _, encoding := range []string{abi.EncodingJSON, abi.EncodingMsgpack} {
		for _, m := range []*plugin.Manifest{
			{Provides: []string{abi.ProvidesTask}},
			{Provides: []string{abi.ProvidesRollout}},
			{Provides: []string{abi.ProvidesScorer}, Scorers: []plugin.Scorer{{Name: "s", Kind: plugin.KindRollout}}},
			{Provides: []string{abi.ProvidesGroupScorer}, Scorers: []plugin.Scorer{{Name: "s", Kind: plugin.KindGroup}}},
		} {
			m.Encoding = encoding
			g := &guest{in: &plugin.Inspection{Manifest: m}}
			cases := g.rawCases()
			greased := map[string]bool{}
			for _, c := range cases {
				if c.as != nil {
					greased[string(c.request)] = true
				}
				if strings.HasPrefix(c.name, "bad:") && c.want != "err" {
					t.Errorf("%s: want %q", c.name, c.want)
				}
			}
			if len(greased) != 4 {
				t.Errorf("%s %v: got %d different greased requests", encoding, m.Provides, len(greased))
			}
		}
	}
}

func TestGrease_KeepsFieldsAndData(t *testing.T) {
	q := generic(abi.ScoreRequest{Scorer: "s", Task: abi.Task{Key: "k", Data: map[string]any{"a": map[string]any{"b": 1}}}, Episode: said("x")})
	got := grease(q, rand.New(rand.NewPCG(1, 1))).(map[string]any)
	task := got["task"].(map[string]any)
	if got["scorer"] != "s" || task["key"] != "k" || !reflect.DeepEqual(task["data"], map[string]any{"a": map[string]any{"b": int64(1)}}) {
		t.Errorf("got %v", got)
	}
	message := got["episode"].(map[string]any)["messages"].([]any)[0].(map[string]any)
	for name, m := range map[string]map[string]any{"request": got, "task": task, "message": message} {
		if !strings.Contains(strings.Join(sortedKeys(m), " "), "_grease_") {
			t.Errorf("%s: no grease in %v", name, m)
		}
	}
}

func TestEnvelopeKey(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{map[string]any{"ok": map[string]any{"scores": []any{int64(1), -5.5, "text", nil, true, int64(-1 << 40)}}}, "ok"},
		{map[string]any{"err": map[string]any{"code": strings.Repeat("x", 70000)}, "later": []any{}}, "err"},
		{map[string]any{"ok": nil, "err": nil}, ""},
		{map[string]any{}, ""},
		{[]any{}, ""},
		{"ok", ""},
	} {
		for _, encoding := range []string{abi.EncodingJSON, abi.EncodingMsgpack} {
			b := encode(encoding, c.v)
			if got := envelopeKey(encoding, b); got != c.want {
				t.Errorf("%s %.60v: got %q want %q", encoding, c.v, got, c.want)
			}
			if got := envelopeKey(encoding, b[:len(b)-1]); got != "" {
				t.Errorf("%s %.60v, cut: got %q", encoding, c.v, got)
			}
		}
	}
}

func FuzzMapKeys(f *testing.F) {
	f.Add(encode(abi.EncodingMsgpack, map[string]any{"ok": []any{map[string]any{"a": 1.5}}}))
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x81, 0xa1, 'a', 0xc7, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		if keys := mapKeys(b); len(keys) > len(b) {
			t.Errorf("%d keys in %d bytes", len(keys), len(b))
		}
	})
}
