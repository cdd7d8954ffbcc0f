package realmodel_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// The eval file as it stands, twice: every answer is the same to the byte, and so is every count.
func TestRun_TwiceTheSame(t *testing.T) {
	m := serve(t, "")
	n := "20"
	if !long() {
		n = "5"
	}
	var runs [2]summary
	var answers [2]map[string]string
	for i := range runs {
		s := startEval(t, m.base(), t.TempDir(), "-n", n).wait(0)
		runs[i], answers[i] = s, completions(t, s)
		t.Logf("run %d: %d tasks, %d cut at the limit, flexible %.2f, strict %.2f, %d tokens in, %d out, %.1f s",
			i+1, s.Planned, s.Limit, *s.Scores["gsm8k.flexible"].Mean, *s.Scores["gsm8k.strict"].Mean,
			s.Usage.Input, s.Usage.Output, s.Duration)
		if s.Completed+s.Limit != s.Planned || s.Owed != 0 || len(answers[i]) != s.Planned || strconv.Itoa(s.Planned) != n {
			t.Errorf("got %+v and %d answers, want all of %s", s, len(answers[i]), n)
		}
	}
	same(t, answers[0], answers[1])
	if a, b := runs[0], runs[1]; a.Usage != b.Usage || a.Usage.Output == 0 || a.Limit != b.Limit || *a.Scores["gsm8k.flexible"].Mean != *b.Scores["gsm8k.flexible"].Mean {
		t.Errorf("got %+v, then %+v", a, b)
	}
}

func same(t *testing.T, a, b map[string]string) {
	t.Helper()
	for key, text := range a {
		if b[key] != text {
			t.Errorf("%s:\ngot  %q\nthen %q", key, text, b[key])
		}
	}
	if len(a) != len(b) {
		t.Errorf("got %d answers, then %d", len(a), len(b))
	}
}

// With a temperature each rollout has a seed of its own, which repeats it.
func TestRun_SeedRepeats(t *testing.T) {
	m := serve(t, "")
	run := func(seed string) map[string]string {
		s := startEval(t, m.base(), t.TempDir(), "-n", "1", "-r", "3",
			"--set", "model.sampling.temperature=1.0", "--set", "model.sampling.max_tokens=16", "--set", "model.sampling.seed="+seed).wait(0)
		return completions(t, s)
	}
	first := run("7")
	same(t, first, run("7"))
	if other := run("8"); maps.Equal(first, other) {
		t.Errorf("seeds 7 and 8 give the same: %q", first)
	}
	distinct := map[string]bool{}
	for _, text := range first {
		distinct[text] = true
	}
	if len(distinct) != 3 {
		t.Errorf("got %q, want three different answers", first)
	}
}

// A prompt that does not fit is refused by the model: an error that no second try mends.
func TestRun_ContextTooLong(t *testing.T) {
	m := serve(t, "")
	s := startEval(t, m.base(), t.TempDir(), "-n", "1", "--set", "prompt.system="+strconv.Quote(strings.Repeat("word ", 2100))).wait(3)
	if len(s.Failures) != 1 || s.Failures[0].Source != "model" || s.Failures[0].Kind != "rejected" || !strings.Contains(s.Failures[0].Example, "context_length_exceeded") {
		t.Errorf("got %+v, want model rejected", s.Failures)
	}
}

// Why the embedded env-server asks for whole answers: a stream of this server counts no tokens.
func TestStream_HasNoUsage(t *testing.T) {
	m := serve(t, "")
	body := `{"model": "smollm2-135m", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 4, "temperature": 0,
		"messages": [{"role": "user", "content": "What is 2 + 2?"}]}`
	resp, err := http.Post(m.base()+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	chunks := 0
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		chunk, ok := bytes.CutPrefix(in.Bytes(), []byte("data: "))
		if !ok || string(chunk) == "[DONE]" {
			continue
		}
		var c struct{ Usage any }
		if err := json.Unmarshal(chunk, &c); err != nil || c.Usage != nil {
			t.Errorf("got %s, %v: this server counts now, and docs/real-model.md says that it does not", chunk, err)
		}
		chunks++
	}
	if chunks < 4 {
		t.Errorf("got %d chunks", chunks)
	}
}

// The eval file passes its check without a model.
func TestEval_Check(t *testing.T) {
	data(t)
	p := start(t, "config", "check", "eval.toml")
	<-p.done
	if code := p.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr.Bytes())
	}
}
