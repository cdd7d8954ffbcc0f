package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// kills is how often wevalr is killed.
func kills(normal, all int) int {
	if long() {
		return all
	}
	return normal
}

// SIGKILL of wevalr at random moments of its life: stop_grace + 2 s later nothing of the server's tree
// lives, setsid grandchildren and servers that ignore TERM included, and no file is left. The
// run then ends with all that it should have.
func TestKill_AnyMoment_NothingLives(t *testing.T) {
	t.Parallel()
	n := kills(10, 50)
	plan := []string{"-n", "50", "-r", fmt.Sprint(n * 4 / 5), "--set", "tasks.shuffle=true"}
	b := newBench(t, habits{}, "", "max_concurrent = 8", soakScore)
	wevalrIn(t, b, 0, "run", "eval.toml", "--dry-run") // builds the plugin
	began := time.Now()                                // a life that is let be, to know how long one is
	wevalrIn(t, b, 0, append([]string{"run", "eval.toml", "-o", "whole"}, plan...)...)
	whole := time.Since(began)
	b.clean(t, 0)
	if err := os.Remove(filepath.Join(b.dir, "ledger")); err != nil {
		t.Fatal(err)
	}

	var slowest time.Duration
	stubborn, reached, levels := 0, 0, map[string]int{}
	for range n {
		h := habits{LatencyMS: 100, Grandchild: true, IgnoreTerm: rand.IntN(3) == 0}
		if h.IgnoreTerm {
			stubborn++
		}
		b.habits(t, h)
		p := b.goOn(t, plan...)
		select {
		case <-time.After(rand.N(2 * whole)):
		case <-p.done:
		}
		_ = p.Process.Kill()
		p.exit(t)
		if _, level, ok := strings.Cut(p.stderr.String(), ", containment "); ok {
			level, _, _ = strings.Cut(level, ",")
			levels[level]++
			reached++
		}
		slowest = max(slowest, b.swept(t))
	}
	b.habits(t, habits{Grandchild: true})
	if code := b.goOn(t, plan...).exit(t); code != 0 {
		t.Fatalf("exit code at last: got %d want 0", code)
	}
	b.clean(t, 0)
	run, _ := b.run()
	t.Logf("%d kills within %v, %d with a server that ignores TERM, %d with a server that was ready, containment %v; swept after %v at the latest, %d directories by the next start",
		n, 2*whole, stubborn, reached, levels, slowest.Round(time.Millisecond), len(b.orphans))
	t.Logf("%s", b.audit(t, run, 8))
}

// wevalrIn runs one command line in the bench to its end.
func wevalrIn(t *testing.T, b *bench, want int, args ...string) *process {
	t.Helper()
	p := b.start(t, args...)
	if code := p.exit(t); code != want {
		t.Fatalf("wevalr %v: exit code got %d want %d\n%s%s", args, code, want, p.stdout.String(), p.stderr.String())
	}
	return p
}

// SIGKILL of wevalr at random sizes of its journal: the resumed run ends with the numbers, and the
// completions, of one that nobody interrupted.
func TestKill_AnyByteOfTheJournal_SameNumbers(t *testing.T) {
	t.Parallel()
	n := kills(20, 200)
	const perKill = 40 // rollouts: so long that each kill finds work to do
	dir := evalFile(t, fmt.Sprintf(`
version = 1
name    = "numbers"
[tasks]
plugin       = "arith"
num_rollouts = %d
[[score]]
plugin = "arith"
[model]
name     = "offline/demo"
options  = { wrong_rate = 0.4, latency = "5ms" }
sampling = { temperature = 1.0, seed = 7 }
[server]
stop_grace = "1s"
[run]
max_concurrent = 8
[[plugin]]
name   = "arith"
source = "$REPO/plugins/arith"
`, n*perKill/50))
	wevalr(t, dir, 0, "run", "eval.toml", "-o", "whole", "--display", "none")
	whole := runDir(t, filepath.Join(dir, "whole"))
	info, err := os.Stat(filepath.Join(whole, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	step := 3 * info.Size() / int64(5*n) // a kill comes late, and all of them are to find work

	args := []string{"run", "eval.toml", "-o", "killed", "--display", "none"}
	killed, torn := 0, 0
	for killed < n {
		p := start(t, dir, args...)
		if !killAtSize(p, filepath.Join(dir, "killed", "*", "*", "journal.jsonl"), rand.Int64N(2*step)) {
			break // it was done before
		}
		p.exit(t)
		killed++
		run := runDir(t, filepath.Join(dir, "killed"))
		if tornLine(t, filepath.Join(run, "journal.jsonl")) || tornLine(t, filepath.Join(run, "traces.jsonl")) {
			torn++
		}
		args = []string{"resume", run, "--display", "none"}
	}
	run := runDir(t, filepath.Join(dir, "killed"))
	wevalr(t, dir, 0, "resume", run, "--display", "none")
	serversGone(t, run, 3*time.Second)

	got, want := readSummary(t, run), readSummary(t, whole)
	if !reflect.DeepEqual(got.Scores, want.Scores) || got.Completed != want.Completed || got.Owed != 0 {
		t.Errorf("got %+v want %+v", got, want)
	}
	for rollout, times := range finished(t, run) {
		if times != 1 {
			t.Errorf("%s was finished %d times", rollout, times)
		}
	}
	if a, b := verdicts(t, run), verdicts(t, whole); !reflect.DeepEqual(a, b) {
		t.Errorf("the verdicts of %d rollouts and of %d differ", len(a), len(b))
	}
	if killed < n*3/4 {
		t.Errorf("killed %d times, of %d", killed, n)
	}
	recovered, _ := filepath.Glob(filepath.Join(run, "recovered", "*"))
	t.Logf("%d kills of a run of %d rollouts, %d left a torn line, %d pieces in recovered/; mean %.4f in both",
		killed, got.Completed, torn, len(recovered), got.Scores["arith.correct"].Mean)
}

// killAtSize kills a wevalr when the journal has grown by so many bytes; false when it ended before.
func killAtSize(p *process, glob string, bytes int64) bool {
	size := func() (n int64) {
		if found, _ := filepath.Glob(glob); len(found) == 1 {
			if info, err := os.Stat(found[0]); err == nil {
				n = info.Size()
			}
		}
		return n
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	before := size()
	for size() <= before+bytes {
		select {
		case <-p.done:
			return false
		case <-tick.C:
		}
	}
	_ = p.Process.Kill()
	<-p.done
	return p.ProcessState.ExitCode() == -1
}

func tornLine(t *testing.T, path string) bool {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return len(b) > 0 && b[len(b)-1] != '\n'
}

// verdicts is each rollout's score.
func verdicts(t *testing.T, run string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, line := range readLines[scoreLine](t, filepath.Join(run, "scores.jsonl")) {
		out[fmt.Sprintf("%s#%d", line.Key, line.Index)] = *line.Scores[0].Value
	}
	return out
}
