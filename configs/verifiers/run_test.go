package verifiers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// valid checks a run's traces.jsonl with verifiers' own reader.
func (v version) valid(t *testing.T, dir string, want int) {
	t.Helper()
	got := v.script(t, "testdata/validate.py", filepath.Join(dir, "traces.jsonl"))
	if n, _ := strconv.Atoi(strings.TrimSpace(got)); n != want {
		t.Errorf("verifiers read %q episodes, want %d", got, want)
	}
}

func wantMean(t *testing.T, r result, want float64, n int) {
	t.Helper()
	got := r.summary.Scores["exact-match.match"]
	if got.Mean == nil || math.Abs(*got.Mean-want) > 1e-9 || got.Rollouts != n {
		t.Errorf("got exact-match.match = %+v, want %v of %d rollouts", got, want, n)
	}
}

// 200 rollouts through every kind of server that verifiers has and through wevalr as the pool, over
// both transports: all complete, every score is right, and verifiers reads every episode.
func TestRun_Servers(t *testing.T) {
	const n = 200
	eachVersion(t, func(t *testing.T, v version) {
		for _, c := range []struct {
			name, lines string
			args        []string
		}{
			{"single", "", nil},
			{"single, tcp", `transport = "tcp"`, nil},
			{"static pool", "", []string{"--workers", "2"}},
			{"elastic pool, tcp", `transport = "tcp"`, []string{"--workers", "2", "--elastic", "--multiplex", "8"}},
			{"two instances", "instances = 2", nil},
			{"two instances, tcp", "instances = 2\ntransport = \"tcp\"", nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				if testing.Short() && c.name != "single" {
					t.Skip("-short: single process over ipc only")
				}
				m := newModel(t)
				e := newEval(t, m.base(), v.command(t, "words", c.args...)+c.lines, plain(n))
				r := e.complete(t, n, "-c", "32")
				wantMean(t, r, share(n), n)
				v.valid(t, r.dir, n)
			})
		}
	})
}

// The embedded env-server's episodes are verifiers' too.
func TestRun_EmbeddedEpisodes(t *testing.T) {
	eachVersion(t, func(t *testing.T, v version) {
		m := newModel(t)
		e := newEval(t, m.base(), "", plain(20))
		r := e.complete(t, 20)
		wantMean(t, r, share(20), 20)
		v.valid(t, r.dir, 20)
	})
}

// The exported taskset: turns, tools, and scores of both sides that agree.
func TestRun_ExportedTaskset(t *testing.T) {
	eachVersion(t, func(t *testing.T, v version) {
		m := newModel(t)
		e := newEval(t, m.base(), v.command(t, "words"), nil)
		e.score(t, "story", filepath.Join(repo(t), "configs/verifiers/testdata/story"))
		v.script(t, "export.py", "--taskset", "words", "--target", "answer", "-o", filepath.Join(e.dir, "data/tasks.jsonl"))
		r := e.complete(t, 20)
		if s := r.summary.Scores["story.played"]; s.Mean == nil || *s.Mean != 1 {
			t.Errorf("got story.played %+v, want 1: the plugin reads messages and tool calls\n%v", s, readLines(t, filepath.Join(r.dir, "scores.jsonl")))
		}
		want := 0.0
		for i := range 20 {
			if right(i) || i%4 == 3 { // the tool tells the right word
				want += 1.0 / 20
			}
		}
		wantMean(t, r, want, 20)
		if said := r.summary.Rewards["said"]; said.Mean == nil || math.Abs(*said.Mean-want) > 1e-9 {
			t.Errorf("got the server's own reward %+v, want %v", said, want)
		}
		v.valid(t, r.dir, 20)
		wantStories(t, r.dir)
	})
}

// wantStories checks that turns and tool calls are in the record as they were played, and that what the
// server got is what was sent.
func wantStories(t *testing.T, dir string) {
	t.Helper()
	type node struct {
		Message struct {
			Role  string
			Calls []struct{ Name, Arguments string } `json:"tool_calls"`
		}
	}
	sent := map[string]map[string]any{}
	for _, line := range readLines(t, filepath.Join(dir, "tasks.jsonl")) {
		var l struct {
			Task struct {
				Data map[string]any
			}
			Data map[string]any
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Data == nil {
			l.Data = l.Task.Data
		}
		sent[fmt.Sprint(l.Data["name"])] = l.Data
	}
	lines := readLines(t, filepath.Join(dir, "traces.jsonl"))
	for _, line := range lines {
		var ep struct {
			Traces []struct {
				Task  struct{ Data map[string]any }
				Nodes []node
			}
		}
		if err := json.Unmarshal([]byte(line), &ep); err != nil {
			t.Fatal(err)
		}
		trace := ep.Traces[0]
		roles := ""
		for _, n := range trace.Nodes {
			roles += n.Message.Role[:1]
			for _, c := range n.Message.Calls {
				if want := fmt.Sprintf(`{"name": "n%v"}`, trace.Task.Data["idx"]); c.Name != "lookup" || c.Arguments != want {
					t.Errorf("got the tool call %+v, want lookup of %s", c, want)
				}
			}
		}
		want := "sua"
		switch {
		case trace.Task.Data["tool"] == true:
			want = "suata"
		case trace.Task.Data["turns"] == 3.0:
			want = "suauaua"
		}
		if roles != want {
			t.Errorf("%v: got messages %s, want %s", trace.Task.Data["name"], roles, want)
		}
		for field, value := range sent[fmt.Sprint(trace.Task.Data["name"])] {
			if got := trace.Task.Data[field]; fmt.Sprint(got) != fmt.Sprint(value) {
				t.Errorf("sent %s = %v, the server has %v", field, value, got)
			}
		}
	}
}

// The tasks that stand beside the eval file are what export.py writes.
func TestExport_Committed(t *testing.T) {
	v := release(t)
	path := filepath.Join(t.TempDir(), "words.jsonl")
	v.script(t, "export.py", "--taskset", "words", "--target", "answer", "-o", path)
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("tasks/words.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("tasks/words.jsonl is not what export.py writes with verifiers %s", v.name)
	}
}

// show prints what was said, tool calls included.
func TestShow_Tools(t *testing.T) {
	v := release(t)
	m := newModel(t)
	e := newEval(t, m.base(), v.command(t, "words"), nil)
	v.script(t, "export.py", "--taskset", "words", "--target", "answer", "-n", "4", "-o", filepath.Join(e.dir, "data/tasks.jsonl"))
	r := e.complete(t, 4)
	p := e.start(t, "show", r.dir, "word-0003")
	within(t, p.done, "end of show", nil)
	for _, want := range []string{"Look up what is kept under n3", "lookup", `{"name": "n3"}`, "w3"} {
		if !strings.Contains(p.stdout.String(), want) {
			t.Errorf("show has no %q:\n%s", want, p.stdout.String())
		}
	}
}

// A first rollout that takes long holds nobody up: its first delta shows that the server knows the task.
func TestRun_LongFirst(t *testing.T) {
	eachVersion(t, func(t *testing.T, v version) {
		m := newModel(t)
		e := newEval(t, m.base(), v.command(t, "words"), plain(8))
		full := m.hold(0, 8) // no call is answered before all have come
		p := e.start(t, "run", e.file, "--json", "-c", "8")
		p.comes(full, "8 calls in flight")
		m.let()
		p.wait().wantComplete(t, 8)
	})
}

// A field that verifiers drops without a word is named, and the run ends there.
func TestRun_DroppedField(t *testing.T) {
	eachVersion(t, func(t *testing.T, v version) {
		m := newModel(t)
		tasks := plain(50)
		for _, x := range tasks {
			data, _ := x["data"].(map[string]any)
			data["colour"] = "red"
		}
		e := newEval(t, m.base(), v.command(t, "words"), tasks)
		r := e.run(t, "-c", "2")
		if r.code == 0 || r.summary.Completed > 2 {
			t.Errorf("got exit code %d, %+v; want an end at the first rollouts", r.code, r.summary)
		}
		if want := `field colour: sent "red", the server has nothing`; !strings.Contains(r.stderr, want) {
			t.Errorf("stderr has no %q:\n%s", want, r.stderr)
		}
	})
}
