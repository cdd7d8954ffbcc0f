package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/internal/publicdata"
	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

func rows[T any](t *testing.T, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, v)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func score(t *testing.T, p *sdktest.Plugin, scorer string, task abi.Task, completion string) abi.Score {
	t.Helper()
	scores, err := p.Score(scorer, task, abi.Episode{Completion: completion})
	if err != nil || len(scores) != 1 || scores[0].Value == nil {
		t.Fatalf("%s: got %v, %v; want one score", scorer, scores, err)
	}
	return scores[0]
}

// Every published verdict of 4 models on 1,319 tasks: 5,276 for each rule.
func TestScorers_PublishedLabels(t *testing.T) {
	dir := publicdata.Dir(t, "gsm8k")
	host := sdktest.Host{Datasets: map[string]fs.FS{"dataset": os.DirFS(dir)}, Options: map[string]any{"marker": "A: "}}
	p := sdktest.New(t, host)
	list, err := p.Tasks(500)
	if err != nil || len(list) != 1319 {
		t.Fatalf("tasks: got %d, %v; want 1319", len(list), err)
	}
	tasks := map[string]abi.Task{}
	for _, task := range list {
		tasks[task.Key] = task
	}
	labels, err := os.ReadFile(filepath.Join(dir, "labels.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(labels)), "\n")
	models := strings.Split(lines[0], "\t")[1:]
	want := map[string]string{} // model + key → "0" or "1"
	for _, line := range lines[1:] {
		for i, v := range strings.Split(line, "\t")[1:] {
			want[models[i]+" "+strings.Split(line, "\t")[0]] = v
		}
	}
	correct := map[string]int{"6b_finetuning": 286, "6b_verification": 515, "175b_finetuning": 458, "175b_verification": 742}
	if len(models) != len(correct) {
		t.Fatalf("labels.tsv: got models %q", models)
	}
	for _, model := range models {
		replays := rows[struct{ Key, Completion string }](t, filepath.Join(dir, "replay-"+model+".jsonl"))
		if len(replays) != 1319 {
			t.Fatalf("%s: got %d replays, want 1319", model, len(replays))
		}
		for _, scorer := range []string{"strict", "flexible", "dataset"} {
			sum := 0
			for _, r := range replays {
				got := score(t, p, scorer, tasks[r.Key], r.Completion)
				if (*got.Value == 1) != (want[model+" "+r.Key] == "1") {
					t.Errorf("%s %s %s: got %v (answer %q), want %s", scorer, model, r.Key, *got.Value, got.Answer, want[model+" "+r.Key])
				}
				sum += int(*got.Value)
			}
			if sum != correct[model] {
				t.Errorf("%s %s: got %d correct, want %d", scorer, model, sum, correct[model])
			}
		}
	}
}

// The replays carry no "#### ", so the default marker finds nothing in them.
func TestScorers_DefaultMarkerOnReplays(t *testing.T) {
	dir := publicdata.Dir(t, "gsm8k")
	p := sdktest.New(t, sdktest.Host{})
	for _, r := range rows[struct{ Key, Completion string }](t, filepath.Join(dir, "replay-175b_verification.jsonl")) {
		for _, scorer := range []string{"strict", "dataset"} {
			if got := score(t, p, scorer, abi.Task{Key: r.Key, Target: "18"}, r.Completion); *got.Value != 0 || got.Label != "no_answer" {
				t.Fatalf("%s %s: got %v %q, want 0 no_answer", scorer, r.Key, *got.Value, got.Label)
			}
		}
	}
}

func TestScorers_EdgeCases(t *testing.T) {
	type edge struct {
		Output, Answer    string
		DS                bool   `json:"ds"`
		Strict            bool   `json:"strict_match"`
		StrictExtracted   string `json:"strict_match_extracted"`
		Flexible          bool   `json:"flexible_extract"`
		FlexibleExtracted string `json:"flexible_extract_extracted"`
	}
	p := sdktest.New(t, sdktest.Host{})
	cases := rows[edge](t, filepath.Join(publicdata.Dir(t, "gsm8k"), "edge_cases.jsonl"))
	if len(cases) != 31 {
		t.Fatalf("got %d cases, want 31", len(cases))
	}
	for _, c := range cases {
		_, number, _ := strings.Cut(c.Answer, mark)
		for _, target := range []string{c.Answer, number} {
			task := abi.Task{Key: "edge", Target: target}
			for scorer, want := range map[string]bool{"dataset": c.DS, "strict": c.Strict, "flexible": c.Flexible} {
				if got := score(t, p, scorer, task, c.Output); (*got.Value == 1) != want {
					t.Errorf("%s %q target %q: got %v (answer %q), want %v", scorer, c.Output, target, *got.Value, got.Answer, want)
				}
			}
			for scorer, want := range map[string]string{"strict": c.StrictExtracted, "flexible": c.FlexibleExtracted} {
				if want == "[invalid]" {
					want = ""
				}
				if got := score(t, p, scorer, task, c.Output); got.Answer != want {
					t.Errorf("%s %q: got answer %q want %q", scorer, c.Output, got.Answer, want)
				}
			}
		}
	}
}

func TestTasks_Shape(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{
		Datasets: map[string]fs.FS{"dataset": fstest.MapFS{"sub/train.jsonl": {Data: []byte(
			`{"question": "How many?", "answer": "2 and 3\n#### 1,005"}` + "\r\n\n" + `{"question": "q", "answer": "#### -2"}`)}}},
		Options: map[string]any{"file": "sub/train.jsonl"},
	})
	list, err := p.Tasks(1)
	if err != nil || len(list) != 2 {
		t.Fatalf("got %v, %v", list, err)
	}
	if a := list[0]; a.Key != "train-0" || a.Data["prompt"] != "How many?" || len(a.Data) != 1 || a.Target != "1,005" || a.Metadata["solution"] != "2 and 3" {
		t.Errorf("got %+v", a)
	}
	if b := list[1]; b.Key != "train-2" || b.Target != "-2" {
		t.Errorf("got %+v", b)
	}
}

func TestTasks_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want string
	}{
		"bad json":  {"{\"question\": \"q\", \"answer\": \"#### 1\"}\n{\"question\"", "test.jsonl:2: json: "},
		"no answer": {`{"question": "q", "answer": "1"}`, "test.jsonl:1: want "},
		"no object": {`[1]`, "test.jsonl:1: want "},
	} {
		p := sdktest.New(t, sdktest.Host{Datasets: map[string]fs.FS{"dataset": fstest.MapFS{"test.jsonl": {Data: []byte(c.file)}}}})
		_, err := p.Tasks(10)
		var own *sdk.Error
		if !errors.As(err, &own) || own.Code != "dataset" || !strings.HasPrefix(own.Message, c.want) {
			t.Errorf("%s: got %v, want dataset: %s…", name, err, c.want)
		}
	}
	_, err := sdktest.New(t, sdktest.Host{}).Tasks(10)
	if err == nil || !strings.Contains(err.Error(), "is fs.dataset granted?") {
		t.Errorf("ungranted: got %v", err)
	}
}

func TestScorers_Rules(t *testing.T) {
	custom := sdktest.New(t, sdktest.Host{Options: map[string]any{"marker": "A: "}})
	standard := sdktest.New(t, sdktest.Host{})
	for _, c := range []struct {
		p                  *sdktest.Plugin
		scorer, completion string
		target             any
		answer             string
		value              float64
	}{
		{custom, "strict", "the USA: 5\nA: 7", "7", "7", 1},
		{custom, "strict", "the USA: 5", "5", "", 0},
		{custom, "strict", "A: x\nA: 7", int64(7), "7", 1},
		{custom, "dataset", "A: 1,000", "1000", "1,000", 1},
		{standard, "strict", "so #### 7", "7", "7", 1},
		{standard, "strict", "##### 7", "7", "7", 1},
		{standard, "strict", "#### - 7 #### 8", "8", "8", 1},
		{standard, "strict", "#### -", "7", "", 0},
		{standard, "flexible", "a-b -", "7", "", 0},
		{standard, "flexible", "--7", "-7", "-7", 1},
		{standard, "flexible", "5...", "5", "5...", 0},
		{standard, "flexible", "2.5", 2.5, "2.5", 1},
	} {
		got := score(t, c.p, c.scorer, abi.Task{Key: "k", Target: c.target}, c.completion)
		if *got.Value != c.value || got.Answer != c.answer {
			t.Errorf("%s %q: got %v %q want %v %q", c.scorer, c.completion, *got.Value, got.Answer, c.value, c.answer)
		}
	}
	for _, target := range []any{nil, "", " ", true} {
		if _, err := standard.Score("strict", abi.Task{Key: "k", Target: target}, abi.Episode{}); err == nil {
			t.Errorf("target %v: got no error", target)
		}
	}
	if _, err := sdktest.New(t, sdktest.Host{Options: map[string]any{"marker": ""}}).Init(); err == nil {
		t.Error("empty marker: got no error")
	}
}
