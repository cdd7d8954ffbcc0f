// Package realmodel_test drives the built wevalr, as a person does, against a real model that serve.py
// starts. What needs the model skips, in one line, without WEVALR_MODEL_PYTHON: a Python that has
// requirements.txt.
package realmodel_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/configs/internal/evaltest"
)

// patience is how long a test waits for anything; 20 answers take two and a half minutes on a quiet core.
const patience = 30 * time.Minute

var wevalr string // the built binary

func TestMain(m *testing.M) { os.Exit(evaltest.Main(m, &wevalr)) }

// long is .ci/run's long mode, with the whole of each case.
func long() bool { return os.Getenv("WEVALR_LONG") == "1" }

// python is one that can serve the model.
func python(t *testing.T) string {
	t.Helper()
	p := os.Getenv("WEVALR_MODEL_PYTHON")
	if p == "" {
		t.Skip("WEVALR_MODEL_PYTHON is not set: no Python with a model")
	}
	return p
}

// data is the folder with GSM8K, beside the checkout.
func data(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("../../../shared/data/gsm8k/test.jsonl"); err != nil {
		if os.Getenv("WEVALR_REQUIRE_DATA") == "1" {
			t.Fatalf("no GSM8K, and WEVALR_REQUIRE_DATA=1: %v", err)
		}
		t.Skipf("no GSM8K: %v", err)
	}
}

// model is serve.py at work.
type model struct {
	*exec.Cmd
	port string
	log  bytes.Buffer
	done <-chan struct{}
}

// serve starts the model server on a port, "" for any, and waits until it answers.
func serve(t *testing.T, port string) *model {
	t.Helper()
	if port == "" {
		port = evaltest.FreePort(t)
	}
	m := &model{Cmd: exec.Command(python(t), "serve.py", "--port", port), port: port}
	m.Stdout, m.Stderr = &m.log, &m.log
	m.done = evaltest.Start(t, m.Cmd)
	t.Cleanup(func() {
		m.kill()
		if t.Failed() {
			t.Logf("the model server said:\n%s", m.log.Bytes())
		}
	})
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(5 * time.Minute); ; {
		select {
		case <-m.done:
			t.Fatalf("serve.py: %v\n%s", m.ProcessState, m.log.Bytes())
		case <-end:
			t.Fatal("serve.py does not answer")
		case <-tick.C:
		}
		if resp, err := http.Get(m.base() + "/models"); err == nil {
			_ = resp.Body.Close()
			return m
		}
	}
}

func (m *model) base() string { return "http://127.0.0.1:" + m.port + "/v1" }

func (m *model) kill() {
	_ = m.Process.Kill()
	<-m.done
}

// process is a wevalr that was started.
type process struct {
	*exec.Cmd
	t              *testing.T
	stdout, stderr bytes.Buffer
	done           <-chan struct{}
}

// start starts wevalr; its runs are below out.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(wevalr, args...), t: t}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	p.done = evaltest.Start(t, p.Cmd)
	return p
}

// startEval starts a run of eval.toml against an endpoint.
func startEval(t *testing.T, base, out string, args ...string) *process {
	t.Helper()
	data(t)
	return start(t, append([]string{
		"run", "eval.toml", "-o", out, "--json", "--display", "plain", "--set", fmt.Sprintf("model.client.base_url=%q", base),
	}, args...)...)
}

// summary is what the tests read of summary.json.
type summary struct {
	Run                                     struct{ Dir string }
	Planned, Completed, Limit, Errors, Owed int
	Failures                                []struct{ Source, Kind, Example string }
	Scores                                  map[string]struct{ Mean *float64 }
	Usage                                   usage
	Duration                                float64 `json:"duration_s"`
}

type usage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// wait waits for the end, and wants an exit code.
func (p *process) wait(code int) summary {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("wevalr does not end\n%s", p.stderr.Bytes())
	}
	if got := p.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("exit code: got %d, want %d\n%s%s", got, code, p.stderr.Bytes(), p.stdout.Bytes())
	}
	var s summary
	if err := json.Unmarshal(p.stdout.Bytes(), &s); err != nil {
		p.t.Fatalf("stdout is no summary: %v\n%s", err, p.stdout.Bytes())
	}
	return s
}

// episode is what the tests read of a line of traces.jsonl.
type episode struct {
	Task   struct{ Key string }
	Traces []struct {
		Nodes []struct {
			Sampled bool
			Message struct{ Content string }
		}
		Calls []struct {
			FinishReason string `json:"finish_reason"`
			Usage        *struct {
				Prompt     int64 `json:"prompt_tokens"`
				Completion int64 `json:"completion_tokens"`
			}
		}
	}
}

// completions are a run's answers by task, with how they ended and what they cost: a byte of
// difference in any is one here.
func completions(t *testing.T, s summary) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, e := range lines[episode](t, s, "traces.jsonl") {
		tr := e.Traces[0]
		call := tr.Calls[0]
		if call.Usage == nil || call.Usage.Prompt == 0 || call.Usage.Completion == 0 {
			t.Errorf("%s: no usage", e.Task.Key)
			continue
		}
		text := tr.Nodes[len(tr.Nodes)-1].Message.Content
		for i := 1; ; i++ { // several rollouts of a task
			key := fmt.Sprintf("%s/%d", e.Task.Key, i)
			if _, ok := out[key]; !ok {
				out[key] = fmt.Sprintf("%s %d+%d %s", call.FinishReason, call.Usage.Prompt, call.Usage.Completion, text)
				break
			}
		}
	}
	return out
}

// lines are the lines of a file of the run; none where there is no file.
func lines[T any](t *testing.T, s summary, name string) []T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Run.Dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var out []T
	for _, line := range slices.Collect(strings.Lines(string(b))) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, v)
	}
	return out
}
