package star

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files reads what a test gives: name → text.
func files(m map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, ok := m[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
}

func load(t *testing.T, source string) *Script {
	t.Helper()
	s, err := Load("score.star", Options{Read: files(map[string]string{"score.star": source}), Values: map[string]any{"mode": "strict", "n": int64(3)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func request() abi.ScoreRequest {
	cost, turns := 0.5, 2.0
	return abi.ScoreRequest{
		Scorer: "correct", Seed: 11,
		Task: abi.Task{
			Key: "k", Data: map[string]any{"prompt": "p", "n": int64(2)}, Target: "42", Choices: []string{"a", "b"},
			Metadata: map[string]any{"list": []any{int64(1), 2.5, nil, true}},
		},
		Episode: abi.Episode{
			Completion: "It is 1,042.50 or 42.", StopCondition: "done",
			Messages:  []abi.Message{{Role: "user", Content: "q"}, {Role: "assistant", ToolCalls: []abi.ToolCall{{ID: "1", Name: "add", Arguments: "{}"}}}},
			Errors:    []abi.TraceError{{Type: "E", Message: "m", StatusCode: 429}},
			Rewards:   map[string]*abi.Reward{"r": {Score: 1, Weight: 0.5}, "none": nil},
			Metrics:   map[string]*float64{"turns": &turns, "none": nil},
			Usage:     &abi.Usage{InputTokens: 7, Cost: &cost},
			ToolCalls: []abi.ToolCall{{ID: "1", Name: "add"}},
			Tokens:    []abi.NodeTokens{{IDs: []int64{5}, Mask: []bool{true}, Logprobs: []float64{-0.5}}},
			Traces:    []abi.Episode{{Completion: "t"}},
		},
	}
}

func TestScript_Score_Results(t *testing.T) {
	for _, c := range []struct{ gives, want string }{
		{"True", `[{"value":1}]`},
		{"False", `[{"value":0}]`},
		{"3", `[{"value":3}]`},
		{"0.25", `[{"value":0.25}]`},
		{"None", `[{"value":null}]`},
		{
			`{"value": True, "label": "l", "explanation": "e", "answer": 42, "metadata": {"a": [1, 2.5, None, ("x",)]}}`,
			`[{"value":1,"label":"l","explanation":"e","answer":"42","metadata":{"a":[1,2.5,null,["x"]]}}]`,
		},
		{
			`{"correct": task.target in episode.completion, "length": len(episode.completion), "skipped": None}`,
			`[{"name":"correct","value":1},{"name":"length","value":21},{"name":"skipped","value":null}]`,
		},
		{`{"correct": {"value": 0, "answer": None}}`, `[{"name":"correct","value":0}]`},
		{`{"value": 1, "name": "other"}`, `[{"name":"other","value":1}]`},
	} {
		got, err := load(t, "def score(task, episode):\n    return "+c.gives+"\n").Score(request())
		if err != nil || asJSON(t, got) != c.want {
			t.Errorf("%s: got %s, %v want %s", c.gives, asJSON(t, got), err, c.want)
		}
	}
}

func TestScript_Score_BadResults(t *testing.T) {
	for gives, want := range map[string]string{
		`"yes"`:                                  `score gave string "yes": want True, False, a number, None or a dict`,
		"[1]":                                    "score gave list [1]",
		"{}":                                     "empty dict",
		`{"correct": "yes"}`:                     `score correct: string "yes"`,
		`{1: 2}`:                                 "score name 1: want a string",
		`{"correct": {"answer": "x"}}`:           "score correct: a dict without value",
		`{"value": 1, "vlaue": 2}`:               `key "vlaue" of a score is unknown`,
		`{"value": 1, "metadata": [1]}`:          "metadata: list, want a dict",
		`{"value": 1, "metadata": {"a": score}}`: "metadata: a: function cannot be stored",
	} {
		_, err := load(t, "\ndef score(task, episode):\n    return "+gives+"\n").Score(request())
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeResult || e.Line != 2 || !strings.Contains(e.Message, want) {
			t.Errorf("%s: got %v want %q at line 2", gives, err, want)
		}
	}
}

// Every expression is true.
func TestScript_Score_World(t *testing.T) {
	for _, e := range []string{
		`task.key == "k" and task["key"] == "k" and task.get("key") == "k" and task.get("none", 5) == 5 and task.get("group") == ""`,
		`task.data == {"n": 2, "prompt": "p"} and task.metadata["list"] == [1, 2.5, None, True] and task.choices == ["a", "b"]`,
		`"target" in task and "none" not in task and dict(task)["target"] == "42" and "target" in dir(task)`,
		`json.decode(json.encode(task))["data"]["prompt"] == "p"`,
		`[m.role for m in episode.messages] == ["user", "assistant"] and episode.messages[1].tool_calls[0].name == "add"`,
		`episode.errors[0].status_code == 429 and episode.rewards["r"].weight == 0.5 and episode.rewards["none"] == None`,
		`episode.metrics == {"none": None, "turns": 2.0} and episode.usage.cost == 0.5 and episode.usage.input_tokens == 7`,
		`episode.tokens[0].ids == [5] and episode.tokens[0].mask == [True] and episode.traces[0].completion == "t"`,
		`episode.info == {} and episode.timing == {} and episode.stop_condition == "done" and str(episode.usage).startswith("usage(")`,
		`options["mode"] == "strict" and options["n"] == 3`,
		`math.sqrt(16) == 4 and json.decode("[1]") == [1] and json.decode("x", None) == None`,

		`re.search(r"(\d+)\.$", episode.completion).group(1) == "42" and re.search("x", "y") == None`,
		`re.match("a", "ba") == None and re.match("b", "ba").end() == 1 and re.fullmatch("b", "ba") == None`,
		`re.findall(r"\d", "1a2") == ["1", "2"] and re.findall(r"(\d)(a)?", "1a2") == [("1", "a"), ("2", "")]`,
		`re.search("(?P<x>b)(c)?", "ab")["x"] == "b" and re.search("(b)(c)?", "ab").groups() == ("b", None)`,
		`re.sub(r"(\d)(?P<l>\w)", r"\g<l>\1\\", "1a-2b") == "a1\\-b2\\" and re.sub("a", "b", "aa", count = 1) == "ba"`,
		`re.sub(r"\d", lambda m: str(int(m.group()) + 1), "1-2") == "2-3" and re.split(r",\s*", "a, b,c") == ["a", "b", "c"]`,
		`re.search("(?i)YES", "yes") and re.escape("a.b") == r"a\.b" and [m.start() for m in re.finditer("a", "aba")] == [0, 2]`,

		`text.normalize("The  Answer, is: A cat!") == "answer is cat" and text.words("A b") == ["b"]`,
		`text.numbers("1,234 and -5.50 of 3") == ["1234", "-5.50", "3"] and text.last_number("x 7") == "7" and text.last_number("x") == None`,
		`text.number("$1,234.") == 1234 and text.number("-2.5%") == -2.5 and text.number("1e3") == 1000.0 and text.number("one") == None and text.number("") == None and text.number("--1") == None`,
		`text.last_line("a\n b \n\n") == "b" and text.last_line("") == "" and text.boxed(r"\boxed{1} \boxed{\frac{1}{2}}") == r"\frac{1}{2}" and text.boxed("x") == None`,
		`text.choice("So (B) is wrong. The answer is C.") == "C" and text.choice("(A) or (B)") == "B" and text.choice("none") == None and text.choice("E") == None and text.choice("E", n = 5) == "E"`,
		`text.f1("the cat sat", "a cat") == 2.0 / 3 and text.f1("", "") == 1.0 and text.edit_distance("kitten", "sitting") == 3`,
		`set([1, 1]) == set([1])`,
		`seed == 11`,
	} {
		got, err := load(t, "def score(task, episode, seed):\n    return bool("+e+")\n").Score(request())
		if err != nil || *got[0].Value != 1 {
			t.Errorf("%s: got %s, %v", e, asJSON(t, got), err)
		}
	}
}

func TestScript_Score_FindsTheFunction(t *testing.T) {
	s := load(t, "def score(task, episode):\n    return 1\ndef score_f_one(task, episode):\n    return 2\n"+
		"def score_group(task, episodes):\n    return len(episodes)\ndef score_group_best(task, episodes, seed):\n    return seed\n")
	for scorer, want := range map[string]float64{"score": 1, "f-one": 2, "group": 1, "other": 1} {
		if got, err := s.Score(abi.ScoreRequest{Scorer: scorer}); err != nil || *got[0].Value != want {
			t.Errorf("%s: got %s, %v want %v", scorer, asJSON(t, got), err, want)
		}
	}
	for scorer, want := range map[string]float64{"group": 2, "best": 9} {
		got, err := s.ScoreGroup(abi.ScoreGroupRequest{Scorer: scorer, Seed: 9, Episodes: make([]abi.Episode, 2)})
		if err != nil || *got[0].Value != want {
			t.Errorf("group %s: got %s, %v want %v", scorer, asJSON(t, got), err, want)
		}
	}
}

func TestScript_Errors_SayWhere(t *testing.T) {
	for name, c := range map[string]struct{ source, code, want string }{
		"syntax":     {"def score(task, episode):\n    return 1 +\n", CodeSyntax, "score.star:2:15: got newline"},
		"import":     {"import re\n", CodeSyntax, "hint: there is no import"},
		"try":        {"def score(t, e):\n    try:\n        pass\n", CodeSyntax, "hint: there are no exceptions"},
		"f-string":   {"def score(t, e):\n    return f\"{t}\"\n", CodeSyntax, "hint: there are no f-strings"},
		"name":       {"def score(task, episode):\n    return undefned + other\n", CodeSyntax, "score.star:2:12: undefined: undefned\nscore.star:2:23: undefined: other"},
		"top level":  {"x = 1 // 0\n", CodeRun, "score.star:1:7: floored division by zero"},
		"inner":      {"def f(x):\n    return x.y\ndef score(task, episode):\n    return f(task)\n", CodeRun, "score.star:2:13: task has no field .y, there are: [choices cluster data"},
		"fail":       {"def score(task, episode):\n    fail(\"no\", 1)\n", CodeRun, "score.star:2:9: fail: no 1"},
		"pattern":    {"def score(task, episode):\n    return re.search(\"(?=x)\", \"x\")\n", CodeRun, "hint: patterns are Go's"},
		"recursion":  {"def score(task, episode):\n    return score(task, episode)\n", CodeRun, "function score called recursively"},
		"steps":      {"def score(task, episode):\n    while True:\n        pass\n", CodeSteps, "score.star:1:1: score ran for too many steps"},
		"steps top":  {"while True:\n    pass\n", CodeSteps, "too many steps"},
		"parameters": {"def score(task):\n    return 1\n", CodeRun, "accepts 1 positional argument (2 given)"},
		"none":       {"x = 1\n", CodeNone, "score.star: defines no score_correct and no score: def score(task, episode): …"},
		"global":     {"n = [0]\ndef score(task, episode):\n    n.append(1)\n", CodeRun, "score.star:3:13: append: cannot append to frozen list"},
		"file":       {"x = files.read(\"none\")\n", CodeRun, "score.star:1:15: files.read: none: file does not exist"},
		"load":       {"load(\"none.star\", \"x\")\n", CodeFile, "none.star: file does not exist"},
		"load error": {"load(\"bad.star\", \"x\")\n", CodeSyntax, "bad.star:1:5: undefined: y"},
		"load cycle": {"load(\"score.star\", \"x\")\n", CodeRun, "score.star loads itself"},
		"clock":      {"x = time.now()\n", CodeSyntax, "undefined: time"},
		"distance":   {"x = text.edit_distance(\"a\" * 100000, \"b\" * 100000)\n", CodeRun, "are too many"},
	} {
		s, err := Load("score.star", Options{Read: files(map[string]string{"score.star": c.source, "bad.star": "x = y\n"}), Steps: 100_000})
		if err == nil {
			_, err = s.Score(request())
		}
		var e *Error
		if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s: got %+v want %s %q", name, err, c.code, c.want)
		}
	}
}

func TestScript_Errors_Trace(t *testing.T) {
	_, err := load(t, "def f(x):\n    return x.y\n\ndef score(task, episode):\n    return f(task)\n").Score(request())
	var e *Error
	if !errors.As(err, &e) || fmt.Sprint(e.Trace) != "[score.star:5:13: in score score.star:2:13: in f]" {
		t.Errorf("got %+v", e)
	}
	if got := asJSON(t, e.Data()); got != `{"column":13,"file":"score.star","line":2,"trace":["score.star:5:13: in score","score.star:2:13: in f"]}` {
		t.Errorf("data: got %s", got)
	}
	if (&Error{}).Error() != "" || (&Error{}).Data() != nil {
		t.Error("the zero error: want nothing")
	}
}

func TestScript_Tasks(t *testing.T) {
	s, err := Load("score.star", Options{Read: files(map[string]string{
		"lib.star":   "def key(i):\n    return \"t-%d\" % i\n",
		"data.jsonl": "{\"q\": \"1+1\", \"a\": 2}\n\n{\"q\": \"é\", \"a\": null}\n",
		"score.star": "load(\"lib.star\", \"key\")\ndef tasks():\n    return [{\"key\": key(i), \"data\": {\"prompt\": row[\"q\"]}, \"target\": row[\"a\"], \"choices\": [\"a\"]} for i, row in enumerate(files.jsonl(\"data.jsonl\") * 2)]\n",
	})})
	if err != nil {
		t.Fatal(err)
	}
	var got []abi.Task
	for cursor, pages := "", 0; ; pages++ {
		page, next, err := s.Tasks(cursor, 3)
		if err != nil || pages > 2 {
			t.Fatalf("page %d: %v", pages, err)
		}
		got = append(got, page...)
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(got) != 4 || asJSON(t, got[3]) != `{"key":"t-3","data":{"prompt":"é"},"choices":["a"]}` || asJSON(t, got[0].Target) != "2" {
		t.Errorf("got %s", asJSON(t, got))
	}
	if _, _, err := s.Tasks("x", 1); err == nil {
		t.Error("a bad cursor: no error")
	}
}

func TestScript_Tasks_Bad(t *testing.T) {
	for gives, want := range map[string]string{
		"1":                                      "tasks gave int, want a list of dicts",
		"{}":                                     "tasks gave dict",
		"[1]":                                    "task 0: int, want a dict",
		`[{"key": "a"}]`:                         "data is missing",
		`[{"key": "a b", "data": {}}]`:           `key "a b": want 1 to 200 of`,
		`[{"key": "a", "data": {}, "x": 1}]`:     `unknown key "x"`,
		`[{"key": "a", "data": {1: 2}}]`:         "data: key 1 is not a string",
		`[{"key": "a", "data": {"x": 1 << 80}}]`: "is over 64 bits",
		`[{"key": "a", "data": {}, "choices": [1]}]`: "choices has the wrong type",
	} {
		_, _, err := load(t, "def tasks():\n    return "+gives+"\n").Tasks("", 10)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeResult || e.Line != 1 || !strings.Contains(e.Message, want) {
			t.Errorf("%s: got %v want %q", gives, err, want)
		}
	}
}

func TestGuest_Serve(t *testing.T) {
	var printed []string
	g := &Guest{
		Read:  files(map[string]string{"a.star": "print(options[\"x\"])\ndef score(task, episode):\n    return {\"value\": episode.completion == task.target, \"answer\": episode.completion}\n"}),
		Print: func(s string) { printed = append(printed, s) },
	}
	w := &codec.Writer{}
	codec.WriteInit(w, abi.InitRequest{Options: map[string]any{"file": "a.star", "x": "hello", "max_steps": int64(1000)}})
	if out := g.Serve(abi.OpInit, w.B, nil); !strings.Contains(string(out), "ok") || len(printed) != 1 || printed[0] != "hello" {
		t.Fatalf("init: got %q, printed %q", out, printed)
	}
	w = &codec.Writer{}
	codec.WriteScoreRequest(w, abi.ScoreRequest{Scorer: "s", Task: abi.Task{Target: "2"}, Episode: abi.Episode{Completion: "2"}})
	r := codec.NewReader(g.Serve(abi.OpScore, w.B, nil)[4:]) // behind {"ok":
	if got := codec.ReadScoreResponse(r); r.End() != nil || len(got.Scores) != 1 || *got.Scores[0].Value != 1 || got.Scores[0].Answer != "2" {
		t.Errorf("score: got %s, %v", asJSON(t, got), r.End())
	}
	for name, c := range map[string]struct {
		op      abi.Op
		request []byte
		want    string
	}{
		"no group scorer": {abi.OpScoreGroup, w.B, "unsupported"},
		"garbage":         {abi.OpScore, []byte{0xc1}, "bad_request"},
		"rollout":         {abi.OpRollout, nil, "unsupported"},
	} {
		if out := string(g.Serve(c.op, c.request, nil)); !strings.Contains(out, "err") || !strings.Contains(out, c.want) {
			t.Errorf("%s: got %q want %s", name, out, c.want)
		}
	}
	g.Manifest = []byte("name = \"x\"\n[[option]]\nname = \"file\"\n[[scorer]]\nname   = \"s\" # one\n[[ scorer ]]\nname = 1\n[[scorer]]\nname = 'two'\n")
	if out := string(g.Serve(abi.OpScore, w.B, nil)); strings.Contains(out, "err") {
		t.Errorf("a scorer of the manifest: got %q", out)
	}
	w = &codec.Writer{}
	codec.WriteScoreRequest(w, abi.ScoreRequest{Scorer: "other"})
	if out := string(g.Serve(abi.OpScore, w.B, nil)); !strings.Contains(out, `no scorer "other", there are: [s two]`) {
		t.Errorf("another scorer: got %q", out)
	}
	if out := string((&Guest{}).Serve(abi.OpInit, []byte{0x80}, nil)); !strings.Contains(out, "script_file") || !strings.Contains(out, "score.star") {
		t.Errorf("no files: got %q", out)
	}
}
