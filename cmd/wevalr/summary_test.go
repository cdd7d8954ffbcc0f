package main

import (
	"math"
	"path/filepath"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12*math.Max(1, math.Abs(b)) }

// binomialSE is the standard error of the mean of n verdicts: sqrt(p(1-p)/(n-1)).
func binomialSE(p float64, n int) float64 { return math.Sqrt(p * (1 - p) / float64(n-1)) }

// The numbers of summary.json follow from scores.jsonl by textbook formulas, written here once more: the
// mean of task means, its standard error over tasks, and Student's interval.
func TestSummary_Quickstart_RecomputedFromScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wevalr(t, dir, 0, "run", filepath.Join(repoRoot(t), "configs", "quickstart.toml"), "-o", "out", "--display", "none")
	run := runDir(t, filepath.Join(dir, "out"))
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, line := range readLines[scoreLine](t, filepath.Join(run, "scores.jsonl")) {
		sums[line.Key] += *line.Scores[0].Value
		counts[line.Key]++
	}
	n := float64(len(sums))
	var mean, ss, pass2 float64
	for key, sum := range sums {
		mean += sum / counts[key] / n
		wrong := counts[key] - sum
		pass2 += (1 - wrong*(wrong-1)/(counts[key]*(counts[key]-1))) / n
	}
	for key, sum := range sums {
		d := sum/counts[key] - mean
		ss += d * d
	}
	se := math.Sqrt(ss / (n - 1) / n)
	const t975df49 = 2.0095752371292397 // Student's t, 97.5 %, 49 degrees of freedom

	got := readSummary(t, run).Scores["arith.correct"]
	if got.Tasks != 50 || got.Rollouts != 200 || got.Scored != 200 || got.Missing != 0 || got.Coverage != 1 {
		t.Errorf("denominators: got %+v", got)
	}
	if !near(got.Mean, mean) || !near(got.SE, se) || !near(got.PassAt["2"], pass2) {
		t.Errorf("got mean %v se %v pass@2 %v want %v %v %v", got.Mean, got.SE, got.PassAt["2"], mean, se, pass2)
	}
	lo, hi := mean-t975df49*se, mean+t975df49*se
	if math.Abs(got.CI[0]-lo) > 1e-9 || math.Abs(got.CI[1]-hi) > 1e-9 || got.CIMethod != "student_t" {
		t.Errorf("interval: got %v (%s) want [%v %v]", got.CI, got.CIMethod, lo, hi)
	}
}
