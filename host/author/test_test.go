package author

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Each template passes its own cases and the built-in ones, natively and as wasm.
func TestTest_Templates(t *testing.T) {
	needBuild(t)
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			got, err := Test(t.Context(), TestSpec{Dir: newPlugin(t, "go", kind)})
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := got.Text(&text); err != nil {
				t.Fatal(err)
			}
			if got.Failed > 0 || !got.Native.OK {
				t.Errorf("%s", text.String())
			}
			t.Log(text.String())
		})
	}
}

// edit replaces text in a file that must have it.
func edit(t *testing.T, path, was, now string) {
	t.Helper()
	text := read(t, path)
	if !strings.Contains(text, was) {
		t.Fatalf("%s: no %q", path, was)
	}
	writeFile(t, path, strings.ReplaceAll(text, was, now))
}

func find(t *testing.T, got *Tested, name string) CaseResult {
	t.Helper()
	for _, c := range got.Cases {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no case %q in %+v", name, got.Cases)
	return CaseResult{}
}

// A wrong plugin fails: a wrong golden, its own test, another answer as wasm than natively, state.
func TestTest_FindsMistakes(t *testing.T) {
	needBuild(t)
	for name, c := range map[string]struct {
		was, now string // in main.go
		fails    string
		detail   string
		native   string // "" = not run, else pass or fail
	}{
		"rule":   {`lastWord(r.Episode.Completion)`, `lastWord(r.Episode.Completion) + "x"`, "first.json", `scores[0].answer: got "5x" want "5"`, Fail},
		"native": {`s.Answer = got`, "s.Answer = got\n\ts.Label = runtime.GOOS", "correct: oracle", "natively ", Pass},
		"panic":  {`s.Answer = got`, "s.Answer = got\n\tif got == \"\" {\n\t\tpanic(\"nothing\")\n\t}", "correct: errored", "nothing", ""},
		"binary": {`s.Answer = got`, "s.Answer = got\n\tv := 0.5\n\ts.Value = &v", "correct: huge", "its scorer is binary", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newPlugin(t, "go", "scorer")
			main := filepath.Join(dir, "main.go")
			edit(t, main, c.was, c.now)
			edit(t, main, `import (`, "import (\n\t\"runtime\"\n\t\"strconv\"")
			edit(t, main, `func main() {}`, "func main() {}\n\nvar calls = len(runtime.GOOS) + len(strconv.Itoa(1))")
			got, err := Test(t.Context(), TestSpec{Dir: dir, WasmOnly: c.native == ""})
			if err != nil {
				t.Fatal(err)
			}
			res := find(t, got, c.fails)
			if res.Status != Fail || !strings.Contains(res.Detail, c.detail) || got.Failed == 0 {
				t.Errorf("got %+v", res)
			}
			if c.native != "" && got.Native.OK != (c.native == Pass) {
				t.Errorf("go test: got %+v", got.Native)
			}
		})
	}
}

// --update writes what came out, and a second run passes; --wasm-only executes nothing of the folder.
func TestTest_Update(t *testing.T) {
	needBuild(t)
	dir := newPlugin(t, "go", "scorer")
	file := filepath.Join(dir, "cases", "first.json")
	edit(t, file, `"value": 1`, `"value": 0`)
	writeFile(t, filepath.Join(dir, "cases", "second.json"), `{"scorer": "correct", "task": {"key": "k", "data": {"n": 12}}, "episode": {"completion": "x"}, "want": {}}`)
	writeFile(t, filepath.Join(dir, "evil_test.go"), "package main\n\nfunc init() { panic(1) }\n")
	spec := TestSpec{Dir: dir, WasmOnly: true}
	if got, err := Test(t.Context(), spec); err != nil || got.Failed != 2 || got.Native != nil {
		t.Fatalf("got %+v, %v", got, err)
	}
	spec.Update = true
	got, err := Test(t.Context(), spec)
	if err != nil || got.Failed != 0 || len(got.Updated) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if text := read(t, filepath.Join(dir, "cases", "second.json")); !strings.Contains(text, `"error": "no_target"`) || !strings.Contains(text, `"n": 12`) {
		t.Errorf("got %s", text)
	}
	spec.Update = false
	if got, err := Test(t.Context(), spec); err != nil || got.Failed != 0 || len(got.Updated) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// What is granted as fs.NAME for cases lies in cases/data/NAME.
func TestTest_Dataset(t *testing.T) {
	needBuild(t)
	dir := newPlugin(t, "go", "scorer")
	edit(t, filepath.Join(dir, "plugin.toml"), "[capabilities]", "[capabilities]\nfs.words = { why = \"reads words\" }")
	edit(t, filepath.Join(dir, "main.go"), "s.Answer = got", "b, err := fs.ReadFile(sdk.Dataset(\"words\"), \"w.txt\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\ts.Answer = string(b)")
	edit(t, filepath.Join(dir, "main.go"), "import (", "import (\n\t\"io/fs\"")
	edit(t, filepath.Join(dir, "cases", "first.json"), `"answer": "5"`, `"answer": "five"`)
	_, err := Test(t.Context(), TestSpec{Dir: dir})
	if re, ok := errors.AsType[*RequestError](err); !ok || !strings.Contains(re.Error(), "cases/data/words") {
		t.Errorf("got %v", err)
	}
	writeFile(t, filepath.Join(dir, "cases", "data", "words", "w.txt"), "five")
	got, err := Test(t.Context(), TestSpec{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if c := find(t, got, "first.json"); c.Status != Pass || c.Native != "same" {
		t.Errorf("got %+v", c)
	}
}

func TestReadCases_Refusals(t *testing.T) {
	for text, want := range map[string]string{
		`{"scorre": "x"}`:                       "unknown field",
		`{"scorer": "x", "task": {"key": "k"}}`: "episode or episodes",
		`{"scorer": "x", "episode": {}}`:        "needs task",
		`{"replies": []}`:                       "needs task",
		`{"want": {}} {}`:                       "more than one",
		`{`:                                     "unexpected EOF",
		`{"scorer": "x", "task": {"key": "k"}, "episode": {}, "episodes": [], "x": 1}`: "unknown field",
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "c.json"), text)
		_, err := readCases(dir)
		if re, ok := errors.AsType[*RequestError](err); !ok || !strings.Contains(re.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestWant_Differs(t *testing.T) {
	one := 1.0
	scores := result{scores: []abi.Score{{Name: "s", Value: &one, Answer: "a", Metadata: map[string]any{"n": int64(2)}}}}
	skipped := result{scores: []abi.Score{{Name: "s"}}}
	bad := result{err: errors.New("e"), code: "own"}
	value := func(v any) Want { return Want{Scores: []map[string]any{{"value": v}}} }
	two := 2
	for _, c := range []struct {
		want Want
		got  result
		text string
	}{
		{value(json.Number("1")), scores, ""},
		{value(json.Number("1.0")), scores, "scores[0].value: got 1 want 1.0"},
		{value(nil), skipped, ""},
		{value(nil), scores, "scores[0].value: got 1 want null"},
		{value(0.0), skipped, "got null want 0"},
		{Want{Scores: []map[string]any{{"metadata": map[string]any{"n": 2.0}}}}, scores, ""},
		{Want{}, scores, "scores: got 1 want 0"},
		{Want{Error: "own"}, bad, ""},
		{Want{Error: "other"}, bad, "got own: e want other"},
		{Want{Error: "own"}, scores, "error: got none want own"},
		{value(1.0), bad, "error: got own: e want none"},
		{Want{Tasks: []string{"a"}}, result{keys: []string{"b"}}, `tasks: got ["b"] want ["a"]`},
		{Want{Selected: &two}, result{rollout: true}, "selected: got 0 want 2"},
	} {
		got := c.want.differs(c.got)
		if (got == "") != (c.text == "") || !strings.Contains(got, c.text) {
			t.Errorf("%+v: got %q want %q", c.want, got, c.text)
		}
	}
}
