package verifiers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A pool of two with 1,000 rollouts in flight at once: its broker would block for good at more than 1,000
// queued for one worker.
func TestRun_Thousand(t *testing.T) {
	long(t)
	v := release(t)
	m := newModel(t)
	e := newEval(t, m.base(), v.command(t, "words", "--workers", "2", "--max-concurrent", "8"), plain(1000))
	r := e.complete(t, 1000, "-c", "1000")
	wantMean(t, r, share(1000), 1000)
}

// A prompt of 24 MiB, which comes back about five times, and a completion of 120 MiB. The latter is over what
// a plugin is given: the rollout is complete and on the disk all the same, and the score is an error that says so.
func TestRun_Large(t *testing.T) {
	long(t)
	v := release(t)
	for _, c := range []struct {
		name           string
		prompt, answer int
		code           int
		failure        string // of the score
	}{
		{"prompt of 24 MiB", 24 << 20, 0, 0, ""},
		{"completion of 120 MiB", 0, 120 << 20, 3, "the request is over 64 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(t)
			tasks := plain(1)
			data, _ := tasks[0]["data"].(map[string]any)
			data["prompt"] = "Say the word w0." + strings.Repeat(" please", c.prompt/len(" please"))
			e := newEval(t, m.base(), v.command(t, "words"), tasks)
			full := m.hold(0, 1)
			p := e.start(t, "run", e.file, "--json")
			peak := p.peak()
			p.comes(full, "the model call")
			if c.answer > 0 {
				m.gate <- strings.Repeat("w0 ", c.answer/len("w0 "))
			}
			m.let()
			r := p.wait()
			s := r.summary
			if r.code != c.code || s.Completed != 1 || s.Errors != 0 || len(s.Failures) > 1 {
				t.Fatalf("got exit code %d, %+v; want %d, completed\n%s", r.code, s, c.code, r.stderr)
			}
			if failed := fmt.Sprint(s.Failures); !strings.Contains(failed, c.failure) || len(s.Failures) != c.code/3 {
				t.Errorf("got failures %s, want %q", failed, c.failure)
			}
			t.Logf("wevalr's peak RSS: %d MiB", <-peak>>10)
			if info, err := os.Stat(filepath.Join(r.dir, "traces.jsonl")); err != nil || info.Size() < int64(max(c.prompt, c.answer)) {
				t.Errorf("got %v, %v, want an episode with all of it", info, err)
			}
			v.valid(t, r.dir, 1)
		})
	}
}

// peak gives, once it has ended, the most memory it had in KiB: its own, whatever its children had.
func (p *process) peak() <-chan int {
	out := make(chan int, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		most := 0
		for {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
			if _, rest, ok := strings.Cut(string(b), "VmHWM:"); ok {
				fmt.Sscan(rest, &most)
			}
			select {
			case <-p.done:
				out <- most
				return
			case <-tick.C:
			}
		}
	}()
	return out
}

// long skips what is for `.ci/run long`.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("WEVALR_LONG") != "1" {
		t.Skip("WEVALR_LONG is not 1: a large case")
	}
}
