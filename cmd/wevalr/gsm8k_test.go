package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// gsm8kTasks is how many test tasks GSM8K has: github.com/openai/grade-school-math.
const gsm8kTasks = 1319

// sharedData is the folder of recorded data beside the checkout.
func sharedData(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(repoRoot(t), "..", "shared", "data", name)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("WEVALR_REQUIRE_DATA") == "1" {
			t.Fatalf("no recorded data, and WEVALR_REQUIRE_DATA=1: %v", err)
		}
		t.Skipf("no recorded data: %v", err)
	}
	return dir
}

// gsm8kEval replays one model's published solutions.
func gsm8kEval(t *testing.T, data, model string) string {
	t.Helper()
	return evalFile(t, fmt.Sprintf(`
version = 1
name    = "gsm8k"
[tasks]
plugin = "gsm8k"
[[score]]
plugin  = "gsm8k"
scorer  = "strict"
options = { marker = "A: " }
[[score]]
plugin = "gsm8k"
scorer = "flexible"
[model]
name    = "offline/replay"
options = { file = %q }
[server]
stop_grace = "1s"
[[plugin]]
name   = "gsm8k"
source = "$REPO/plugins/gsm8k"
grant  = { fs.dataset = %q }
`, filepath.Join(data, "replay-"+model+".jsonl"), data))
}

// The counts of data/README.md, which are the dataset's own verdicts, and each verdict.
func TestGSM8K_RecordedModels_ReproduceThePublishedVerdicts(t *testing.T) {
	data := sharedData(t, "gsm8k")
	labels := readLabels(t, filepath.Join(data, "labels.tsv"))
	for model, correct := range map[string]int{
		"6b_finetuning": 286, "6b_verification": 515, "175b_finetuning": 458, "175b_verification": 742,
	} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			dir := gsm8kEval(t, data, model)
			wevalr(t, dir, 0, "run", "eval.toml", "-o", "out", "--display", "none")
			run := runDir(t, filepath.Join(dir, "out"))
			s := readSummary(t, run)
			if s.Planned != gsm8kTasks || s.Completed != gsm8kTasks {
				t.Errorf("got %+v", s)
			}
			mean := float64(correct) / gsm8kTasks
			for _, name := range []string{"gsm8k.strict", "gsm8k.flexible"} {
				if sc := s.Scores[name]; sc.Scored != gsm8kTasks || !near(sc.Mean, mean) || !near(sc.SE, binomialSE(mean, gsm8kTasks)) {
					t.Errorf("%s: got %+v want %d of %d correct", name, sc, correct, gsm8kTasks)
				}
			}
			verdicts := map[string]map[string]float64{"strict": {}, "flexible": {}}
			for _, line := range readLines[scoreLine](t, filepath.Join(run, "scores.jsonl")) {
				verdicts[line.Scorer][line.Key] = *line.Scores[0].Value
			}
			for scorer, got := range verdicts {
				if !maps.Equal(got, labels[model]) {
					t.Errorf("%s: %s", scorer, firstDifference(got, labels[model]))
				}
			}
		})
	}
}

// scoreLine is what the tests read of scores.jsonl.
type scoreLine struct {
	Key, Scorer string
	Index       int
	Scores      []struct{ Value *float64 }
}

// readLabels gives model → key → verdict.
func readLabels(t *testing.T, path string) map[string]map[string]float64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]float64{}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	models := strings.Split(lines[0], "\t")[1:]
	for _, m := range models {
		out[m] = map[string]float64{}
	}
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		for i, m := range models {
			v := map[string]float64{"0": 0, "1": 1, "false": 0, "true": 1}
			verdict, ok := v[strings.ToLower(f[i+1])]
			if !ok {
				t.Fatalf("%s: verdict %q", path, f[i+1])
			}
			out[m][f[0]] = verdict
		}
	}
	return out
}

func firstDifference(got, want map[string]float64) string {
	for k, w := range want {
		if g, ok := got[k]; !ok || g != w {
			return fmt.Sprintf("%s: got %v (%v) want %v", k, g, ok, w)
		}
	}
	return fmt.Sprintf("got %d keys want %d", len(got), len(want))
}

// SIGKILL of wevalr at any moment costs nothing that was finished, leaves no process, and the resumed run
// ends with the numbers of one that was never interrupted.
func TestGSM8K_KilledAndResumed_SameNumbers(t *testing.T) {
	t.Parallel()
	data := sharedData(t, "gsm8k")
	dir := gsm8kEval(t, data, "175b_verification")
	killAfter(t, dir, 300, "run", "eval.toml", "-o", "killed", "-c", "8")
	run := runDir(t, filepath.Join(dir, "killed"))
	killAfter(t, dir, 700, "resume", run, "-c", "8")
	before := finished(t, run)

	shown := wevalr(t, dir, 0, "show", run)
	if !strings.Contains(shown.stdout.String(), fmt.Sprintf("%d completed", len(before))) {
		t.Errorf("show of a killed run: got %s", shown.stdout.String())
	}
	wevalr(t, dir, 0, "resume", run, "--display", "none")
	wevalr(t, dir, 0, "run", "eval.toml", "-o", "whole", "--display", "none")

	for key, n := range finished(t, run) {
		if n != 1 {
			t.Errorf("%s was finished %d times", key, n)
		}
	}
	got, want := readSummary(t, run), readSummary(t, runDir(t, filepath.Join(dir, "whole")))
	if !reflect.DeepEqual(got.Scores, want.Scores) || got.Completed != want.Completed || got.Owed != 0 || got.Run.Attempts != 3 {
		t.Errorf("got %+v want %+v", got, want)
	}
	traces := map[string]int{}
	for _, ep := range readLines[struct{ Task struct{ Key string } }](t, filepath.Join(run, "traces.jsonl")) {
		traces[ep.Task.Key]++
	}
	scored := map[string]int{}
	for _, line := range readLines[scoreLine](t, filepath.Join(run, "scores.jsonl")) {
		scored[line.Key+" "+line.Scorer]++
	}
	if len(traces) != gsm8kTasks || len(scored) != 2*gsm8kTasks {
		t.Errorf("got %d episodes and %d scores", len(traces), len(scored))
	}
	for key, n := range traces {
		if n != 1 {
			t.Errorf("%d episodes of %s", n, key)
		}
	}
	serversGone(t, run, 3*time.Second)
}

// killAfter starts wevalr and kills it when n rollouts of the run are finished, and not all.
func killAfter(t *testing.T, dir string, n int, args ...string) {
	t.Helper()
	p := start(t, dir, args...)
	glob := filepath.Join(dir, "killed", "gsm8k", "*", "journal.jsonl")
	if got := awaitMatches(n, regexp.MustCompile(`"t":"finish"`), glob); got < n {
		t.Fatalf("finished: got %d want %d\n%s", got, n, p.stderr.String())
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.exit(t)
	run := runDir(t, filepath.Join(dir, "killed"))
	serversGone(t, run, 3*time.Second)
	if got := len(finished(t, run)); got < n || got >= gsm8kTasks {
		t.Fatalf("finished before the kill: got %d want %d or more, not all", got, n)
	}
}

// finished counts the finish lines of each rollout.
func finished(t *testing.T, run string) map[string]int {
	t.Helper()
	out := map[string]int{}
	b, err := os.ReadFile(filepath.Join(run, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\{"t":"finish",.*"key":"([^"]+)","index":(\d+),.*\}$`)
	for _, m := range line.FindAllSubmatch(b, -1) {
		out[string(m[1])+"#"+string(m[2])]++
	}
	return out
}
