package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/author"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gsm8kStar is the dataset's own rule, and its tasks.
const gsm8kStar = `
def tasks():
    return [
        {"key": "test-%d" % i, "data": {"prompt": row["question"]}, "target": row["answer"].split("#### ")[-1].strip()}
        for i, row in enumerate(files.jsonl("test.jsonl"))
    ]

def score(task, episode):
    m = re.search(r"#### (-?[0-9.,]+)", episode.completion)
    answer = m[1].replace(",", "") if m else None
    return {"value": answer == task.target.replace(",", ""), "answer": answer}

def score_group(task, episodes):
    return {"best": max([len(e.completion) for e in episodes])}
`

// TestScript shares one engine: compiling the interpreter takes seconds.
func TestScript(t *testing.T) {
	e := newEngine(t)
	t.Run("dataset", func(t *testing.T) { fromDataset(t, e) })
	t.Run("asset", func(t *testing.T) { fromAsset(t, e) })
	t.Run("refusals", func(t *testing.T) { refusals(t, e) })
	t.Run("answers", func(t *testing.T) { answers(t, e) })
}

func newEngine(tb testing.TB) *plugin.Engine {
	tb.Helper()
	if testing.Short() {
		tb.Skip("builds the interpreter for wasip1")
	}
	e, err := plugin.NewEngine(plugin.Options{CacheDir: filepath.Join(tb.TempDir(), "cache")})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

func load(tb testing.TB, e *plugin.Engine, source string, spec plugin.Spec) (*plugin.Plugin, error) {
	tb.Helper()
	spec.Source = source
	p, err := e.Load(context.Background(), spec)
	if err == nil {
		tb.Cleanup(func() { _ = p.Close(context.Background()) })
	}
	return p, err
}

// dataset is a folder with a script, and what else it is given.
func dataset(tb testing.TB, script string, more map[string]string) plugin.Spec {
	tb.Helper()
	dir := tb.TempDir()
	write(tb, filepath.Join(dir, "score.star"), script)
	for name, text := range more {
		write(tb, filepath.Join(dir, name), text)
	}
	return plugin.Spec{Grants: plugin.Grants{FS: map[string]string{"dataset": dir}}}
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func fromDataset(t *testing.T, e *plugin.Engine) {
	t.Helper()
	p, err := load(t, e, ".", dataset(t, gsm8kStar, map[string]string{"test.jsonl": `{"question": "1+1?", "answer": "it is\n#### 2"}` + "\n"}))
	if err != nil {
		t.Fatal(err)
	}
	var tasks []abi.Task
	if err := p.Tasks(context.Background(), func(task abi.Task) error { tasks = append(tasks, task); return nil }); err != nil || len(tasks) != 1 {
		t.Fatalf("tasks: got %+v, %v", tasks, err)
	}
	for completion, want := range map[string]float64{"so\n#### 2": 1, "#### 3": 0, "": 0} {
		res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "score", Task: tasks[0], Episode: abi.Episode{Completion: completion}})
		if err != nil || *res.Scores[0].Value != want || res.Scores[0].Name != "score" {
			t.Errorf("%q: got %+v, %v want %v", completion, res.Scores, err, want)
		}
	}
	res, err := p.ScoreGroup(context.Background(), abi.ScoreGroupRequest{Scorer: "group", Task: tasks[0], Episodes: []abi.Episode{{Completion: "ab"}, {}}})
	if err != nil || *res.Scores[0].Value != 2 || res.Scores[0].Name != "best" {
		t.Errorf("group: got %+v, %v", res.Scores, err)
	}
}

func refusals(t *testing.T, e *plugin.Engine) {
	t.Helper()
	for name, c := range map[string]struct{ script, code, want string }{
		"syntax":   {"def score(task, episode)\n    return 1\n", "script_syntax", "score.star:2:1: got newline, want ':'"},
		"error":    {"def score(task, episode):\n    return task.nothing\n", "script_error", "score.star:2:16: task has no field .nothing"},
		"endless":  {"def score(task, episode):\n    while True:\n        pass\n", "script_steps", "too many steps"},
		"not this": {"def score(task, episode):\n    return \"1\"\n", "script_result", "want True, False"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := dataset(t, c.script, nil)
			spec.Options = map[string]any{"max_steps": 100_000}
			p, err := load(t, e, ".", spec)
			if err == nil {
				_, err = p.Score(context.Background(), abi.ScoreRequest{Scorer: "score"})
			}
			var g *plugin.GuestError
			if !errors.As(err, &g) || g.Code != c.code || !strings.Contains(g.Message, c.want) || g.Data["file"] != "score.star" {
				t.Errorf("got %+v want %s %q", err, c.code, c.want)
			}
		})
	}
	t.Run("no file", func(t *testing.T) {
		_, err := load(t, e, ".", plugin.Spec{})
		if err == nil || !strings.Contains(err.Error(), "score.star: not an asset, and not a file in the folder granted as fs.dataset") {
			t.Errorf("got %v", err)
		}
	})
}

func answers(t *testing.T, e *plugin.Engine) {
	t.Helper()
	t.Run("not a number", func(t *testing.T) {
		p, err := load(t, e, ".", dataset(t, "def score(task, episode):\n    return float(episode.completion)\n", nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, completion := range []string{"nan", "inf"} {
			var bad *plugin.ResponseError
			if _, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "score", Episode: abi.Episode{Completion: completion}}); !errors.As(err, &bad) {
				t.Errorf("%s: got %v, want a ResponseError", completion, err)
			}
		}
	})
	t.Run("huge", func(t *testing.T) {
		p, err := load(t, e, ".", dataset(t, "def score(task, episode):\n    return len(episode.completion)\n", nil))
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "score", Episode: abi.Episode{Completion: strings.Repeat("x", 16<<20)}})
		if err != nil || *res.Scores[0].Value != 16<<20 {
			t.Errorf("got %+v, %v", res, err)
		}
	})
	t.Run("memory", func(t *testing.T) {
		p, err := load(t, e, ".", dataset(t, "def score(task, episode):\n    x = \"x\"\n    while True:\n        x = x + x\n", nil))
		if err != nil {
			t.Fatal(err)
		}
		var limit *plugin.LimitError
		if _, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "score"}); !errors.As(err, &limit) {
			t.Errorf("got %v, want a LimitError", err)
		}
	})
}

// fromAsset: a scripted plugin is this command's code with another manifest and assets.
func fromAsset(t *testing.T, e *plugin.Engine) {
	t.Helper()
	built, err := (&plugin.Builder{CacheDir: e.CacheDir()}).Build(context.Background(), ".")
	if err != nil {
		t.Fatal(err)
	}
	manifest := `manifest = 1
name     = "mine"
version  = "0.1.0"
provides = ["scorer/v1"]
assets   = ["*.star", "plugin.toml"]
[[scorer]]
name   = "correct"
range  = [0, 1]
binary = true
[[option]]
name    = "file"
type    = "string"
default = "mine.star"
`
	star := "load(\"lib.star\", \"same\")\ndef score(task, episode):\n    return {\"correct\": same(episode.completion, task.target)}\n"
	lib := "def same(a, b):\n    return a == b\n"
	var assets []byte
	for _, s := range []string{"lib.star", lib, "mine.star", star, "plugin.toml", manifest} {
		assets = append(binary.AppendUvarint(assets, uint64(len(s))), s...)
	}
	code := withSection(withSection(withoutSections(t, built.Module), abi.SectionManifest, []byte(manifest)), abi.SectionAssets, assets)
	file := filepath.Join(t.TempDir(), "mine.wasm")
	write(t, file, string(code))
	p, err := load(t, e, file, plugin.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for completion, want := range map[string]float64{"42": 1, "41": 0} {
		res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct", Task: abi.Task{Target: "42"}, Episode: abi.Episode{Completion: completion}})
		if err != nil || *res.Scores[0].Value != want || res.Scores[0].Name != "correct" {
			t.Errorf("%s: got %+v, %v want %v", completion, res.Scores, err, want)
		}
	}
	got, err := author.Conform(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range got.Cases {
		if c.Status == author.Fail {
			t.Errorf("conformance: %s: %s", c.Name, c.Detail)
		}
	}
}

// withoutSections leaves out the custom sections of a plugin.
func withoutSections(t *testing.T, b []byte) []byte {
	t.Helper()
	out := append([]byte(nil), b[:8]...)
	for b = b[8:]; len(b) > 0; {
		size, n := binary.Uvarint(b[1:])
		end := 1 + n + int(size)
		if !strings.HasPrefix(string(b[1+n+1:end]), "wevalr.") || b[0] != 0 {
			out = append(out, b[:end]...)
		}
		b = b[end:]
	}
	return out
}

func withSection(b []byte, name string, body []byte) []byte {
	head := append(binary.AppendUvarint(nil, uint64(len(name))), name...)
	b = binary.AppendUvarint(append(b, 0), uint64(len(head)+len(body)))
	return append(append(b, head...), body...)
}

// The items of GSM8K with the answers of a model: what a scored run of it costs.
func BenchmarkScript_GSM8K(b *testing.B) {
	rows, e := gsm8k(b), newEngine(b)
	scripted, err := load(b, e, ".", dataset(b, gsm8kStar, nil))
	if err != nil {
		b.Fatal(err)
	}
	compiled, err := load(b, e, "../gsm8k", plugin.Spec{})
	if err != nil {
		b.Fatal(err)
	}
	run := func(p *plugin.Plugin, scorer string) time.Duration {
		start := time.Now()
		for _, r := range rows {
			if _, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: scorer, Task: abi.Task{Key: "k", Target: r.target}, Episode: abi.Episode{Completion: r.completion}}); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(start)
	}
	var script, native time.Duration
	for b.Loop() {
		native += run(compiled, "dataset")
		script += run(scripted, "score")
	}
	b.ReportMetric(script.Seconds()/float64(b.N), "s/1319-items")
	b.ReportMetric(float64(script)/float64(native), "x-of-the-go-guest")
}

type row struct{ target, completion string }

func gsm8k(tb testing.TB) []row {
	tb.Helper()
	dir, err := filepath.Abs("../../../shared/data/gsm8k")
	if err != nil {
		tb.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "test.jsonl"))
	if err != nil {
		if os.Getenv("WEVALR_REQUIRE_DATA") == "1" {
			tb.Fatalf("public data: %v", err)
		}
		tb.Skipf("public data is not here: %v", err)
	}
	defer func() { _ = f.Close() }()
	var rows []row
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r struct{ Answer string }
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			tb.Fatal(err)
		}
		_, target, _ := strings.Cut(r.Answer, "#### ")
		rows = append(rows, row{target, r.Answer})
	}
	return rows
}
