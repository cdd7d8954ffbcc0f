package realmodel_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// ended is a finish line of journal.jsonl.
type ended struct {
	T, Key, Outcome string
	Failure         *struct{ Source, Kind, Message string }
}

func TestModel_Dies(t *testing.T) {
	m := serve(t, "")
	dies(t, m.base(), m.kill, func() { serve(t, m.port) })
}

// The same without a model.
func TestModel_StandIn_Dies(t *testing.T) {
	t.Parallel()
	s := oneAtATime(t, "127.0.0.1:0", 50*time.Millisecond)
	kill := func() {
		s.CloseClientConnections()
		s.Close()
	}
	dies(t, s.URL+"/v1", kill, func() { oneAtATime(t, s.Listener.Addr().String(), time.Millisecond) })
}

// dies kills a model server in mid-run: what it had answered stays, every other rollout is an error
// of the model, and a resume does those once it is back.
func dies(t *testing.T, base string, kill, again func()) {
	t.Helper()
	const n = 12
	out := t.TempDir()
	p := startEval(t, base, out, "-n", "12", "-c", "4", "--set", "model.sampling.max_tokens=24")
	finished := regexp.MustCompile(`"t":"finish"`)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); ; {
		select {
		case <-p.done:
			t.Fatalf("it ended before: %s", p.stderr.Bytes())
		case <-end:
			t.Fatal("no rollout finishes")
		case <-tick.C:
		}
		journals, _ := filepath.Glob(filepath.Join(out, "*", "*", "journal.jsonl"))
		if len(journals) == 1 {
			if b, err := os.ReadFile(journals[0]); err == nil && len(finished.FindAll(b, -1)) >= 3 {
				break
			}
		}
	}
	kill()
	s := p.wait(3)
	got := s.Completed + s.Limit
	if got < 3 || s.Errors == 0 || got+s.Errors != n || s.Owed != s.Errors {
		t.Errorf("got %+v, want some of %d finished and the others owed as errors", s, n)
	}
	if len(s.Failures) != 1 || s.Failures[0].Source != "model" || s.Failures[0].Kind != "unavailable" {
		t.Errorf("got %+v, want model unavailable", s.Failures)
	}
	for _, e := range lines[ended](t, s, "journal.jsonl") {
		if f := e.Failure; f != nil && !regexp.MustCompile(`connection (refused|reset)|EOF`).MatchString(f.Message) {
			t.Errorf("%s: got %+v, want the connection's end", e.Key, *f)
		}
	}
	before := completions(t, s)

	again()
	s = start(t, "resume", s.Run.Dir, "--json").wait(0)
	if s.Completed+s.Limit != n || s.Owed != 0 {
		t.Errorf("resumed: got %+v, want all %d", s, n)
	}
	after := completions(t, s)
	for key, text := range before {
		if after[key] != text {
			t.Errorf("%s: got %q, before %q", key, after[key], text)
		}
	}
	times := map[string]int{}
	for _, e := range lines[ended](t, s, "journal.jsonl") {
		if e.T == "finish" && e.Outcome != "error" {
			times[e.Key]++
		}
	}
	for key, k := range times {
		if k != 1 {
			t.Errorf("%s finished %d times", key, k)
		}
	}
	if len(times) != n || len(after) != n {
		t.Errorf("got %d finished and %d answers, want %d", len(times), len(after), n)
	}
}
