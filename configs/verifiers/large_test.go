package verifiers_test

import (
	"os"
	"strings"
	"testing"
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

// A prompt of 7 MiB (a line of the jsonl plugin has at most 8) comes back about five times.
func TestRun_LargePrompt(t *testing.T) {
	long(t)
	v := release(t)
	m := newModel(t)
	tasks := plain(1)
	data, _ := tasks[0]["data"].(map[string]any)
	data["prompt"] = "Say the word w0." + strings.Repeat(" please", 7<<20/7)
	e := newEval(t, m.base(), v.command(t, "words"), tasks)
	r := e.complete(t, 1)
	wantMean(t, r, 1, 1)
	v.valid(t, r.dir, 1)
}

// long skips what is for `.ci/run long`.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("WEVALR_LONG") != "1" {
		t.Skip("WEVALR_LONG is not 1: a large case")
	}
}
