package journal

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/failure"
)

func TestMain(m *testing.M) {
	if root := os.Getenv("WEVALR_JOURNAL_WRITER"); root != "" {
		writeUntilKilled(root)
	}
	goleak.VerifyTestMain(m)
}

func epoch() time.Time { return time.Date(2026, 11, 29, 10, 15, 30, 0, time.UTC) }

func testIdentity() Identity {
	return Identity{
		Version: "0.1.0", Model: "offline/demo", TOML: []byte("version = 1\n"),
		Config:  map[string]any{"tasks": map[string]any{"plugin": "arith"}},
		Plugins: []PluginIdentity{{Alias: "arith", Plugin: "arith", SHA256: "ab"}},
	}
}

func testTasks(n int) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		for i := range n {
			key := fmt.Sprintf("t/%d", i)
			if !yield(Task{key, fmt.Appendf(nil, `{"key": %q, "data": {"n": %d}}`, key, i)}, nil) {
				return
			}
		}
	}
}

// newRun makes a run with n tasks, closed when the test ends.
func newRun(t testing.TB, n int) *Run {
	t.Helper()
	r, err := Create(t.TempDir(), "demo", epoch(), testIdentity())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(CloseEvent{}) }) // most tests have closed it
	if _, err := r.SpoolTasks(testTasks(n)); err != nil {
		t.Fatal(err)
	}
	return r
}

func reopen(t testing.TB, r *Run) *Run {
	t.Helper()
	mustClose(t, r)
	again, err := Open(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close(CloseEvent{}) })
	return again
}

func mustClose(t testing.TB, r *Run) {
	t.Helper()
	if err := r.Close(CloseEvent{At: epoch()}); err != nil {
		t.Fatal(err)
	}
}

func episode(key string, index, try int) []byte {
	return fmt.Appendf(nil, `{"key":%q,"index":%d,"try":%d,"pad":%q}`, key, index, try, strings.Repeat("x", index*7))
}

// run1 dispatches and finishes the next try of a rollout.
func run1(t testing.TB, r *Run, key string, index int, outcome failure.Outcome) {
	t.Helper()
	if _, err := try1(r, key, index, outcome); err != nil {
		t.Fatal(err)
	}
}

func try1(r *Run, key string, index int, outcome failure.Outcome) (int, error) {
	task, _ := r.Tasks().Ordinal(key)
	try := r.State(task, index).Tries + 1
	if err := r.Dispatch(key, index, try, epoch()); err != nil {
		return try, err
	}
	return try, finish1(r, key, index, try, outcome)
}

func finish1(r *Run, key string, index, try int, outcome failure.Outcome) error {
	f := Finish{Key: key, Index: index, Try: try, Outcome: outcome, Start: epoch(), End: epoch()}
	f.Usage = Usage{InputTokens: 10, OutputTokens: 1}
	if !outcome.Finished() {
		f.Failure = failure.New(failure.Model, "unavailable", "503 from the model")
	}
	_, err := r.Finish(noCtx(), f, episode(key, index, try))
	return err
}

func lines(t testing.TB, r interface{ Dir() string }, name string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.Dir(), name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

func appendTo(t testing.TB, r interface{ Dir() string }, name, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(r.Dir(), name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}
