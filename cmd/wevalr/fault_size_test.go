package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// peak waits for the end of a process and gives its exit code, and the most memory that it held at once,
// in MiB. The code is -2 when it did not end.
func (p *process) peak(t *testing.T, limit time.Duration) (code, mib int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for {
		select {
		case <-p.done:
			return p.exit(t), mib
		case <-deadline:
			t.Fatalf("no end after %v:\n%s", limit, p.stderr.String())
		case <-tick.C:
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
			if _, hwm, ok := strings.Cut(string(text), "VmHWM:"); ok {
				kib := 0
				_, _ = fmt.Sscan(hwm, &kib)
				mib = max(mib, kib>>10)
			}
		}
	}
}

// A reply as large as 32 MB (256 MB with WEVALR_LONG=1) is an episode like any other. A scorer that has
// no room for it says so, for this rollout.
func TestSize_LargeReply(t *testing.T) {
	t.Parallel()
	size := 32
	if long() {
		size = 256
	}
	b := newBench(t, habits{ReplyBytes: size << 20}, "", "max_concurrent = 1", soakScore)
	p := b.start(t, "run", "eval.toml", "-o", "out", "-n", "2", "--display", "none")
	code, mib := p.peak(t, 5*time.Minute)
	if code != 0 && code != 3 {
		t.Fatalf("exit code: got %d want 0, or 3 where the scorer has no room\n%s", code, p.stderr.String())
	}
	b.clean(t, 0)
	run, _ := b.run()
	s := readSummary(t, run)
	sc := s.Scores["arith.correct"]
	if s.Completed != 2 || sc.Scored+sc.Missing != 2 {
		t.Errorf("got %+v", s)
	}
	info, err := os.Stat(filepath.Join(run, "traces.jsonl"))
	if err != nil || info.Size() < 2*int64(size)<<20 {
		t.Errorf("traces.jsonl: got %v, %v want both replies", info, err)
	}
	if most := 400 + 14*size; mib > most { // what came, decoded, masked, as a line, and garbage
		t.Errorf("%d MiB held at most, want %d or less", mib, most)
	}
	t.Logf("two replies of %d MB, one after the other: exit code %d, %d scored, %d MiB held at most", size, code, sc.Scored, mib)
}

// A prompt of 24 MiB, from a line of a file to its answer's score.
func TestSize_LargePrompt(t *testing.T) {
	t.Parallel()
	dir := evalFile(t, `
version = 1
name    = "prompt"
[tasks]
plugin = "jsonl"
[[score]]
plugin = "exact-match"
[model]
name    = "offline/replay"
options = { file = "completions.jsonl" }
[[plugin]]
name   = "jsonl"
source = "$REPO/plugins/jsonl"
grant  = { fs.dataset = "." }
[[plugin]]
name   = "exact-match"
source = "$REPO/plugins/exact-match"
`)
	for name, line := range map[string]string{
		"tasks.jsonl":       `{"key": "long", "target": "the end", "prompt": "` + strings.Repeat("word ", 24<<20/5) + `"}`,
		"completions.jsonl": `{"key": "long", "completion": "the end"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, dir, "run", "eval.toml", "-o", "out", "--display", "none")
	code, mib := p.peak(t, 5*time.Minute)
	if code != 0 {
		t.Fatalf("exit code: got %d want 0\n%s", code, p.stderr.String())
	}
	found, _ := filepath.Glob(filepath.Join(dir, "out", "prompt", "*"))
	if len(found) != 1 {
		t.Fatalf("got %v want one run", found)
	}
	if sc := readSummary(t, found[0]).Scores["exact-match.match"]; sc.Mean != 1 || sc.Scored != 1 {
		t.Errorf("got %+v want a score of 1", sc)
	}
	t.Logf("a prompt of 24 MiB: %d MiB held at most", mib)
}

// 10,000 rollouts are queued on the disk, not in memory: ten times as many take hardly more.
func TestSize_TenThousandQueued(t *testing.T) {
	t.Parallel()
	var held [2]int
	for i, n := range []string{"250", "2500"} {
		b := newBench(t, habits{Quiet: true}, "", "max_concurrent = 64", soakScore)
		began := time.Now()
		p := b.start(t, "run", "eval.toml", "-o", "out", "-n", n, "-r", "4", "--display", "none")
		code, mib := p.peak(t, 5*time.Minute)
		if code != 0 {
			t.Fatalf("exit code: got %d want 0\n%s", code, p.stderr.String())
		}
		held[i] = mib
		b.clean(t, 0)
		run, _ := b.run()
		s := readSummary(t, run)
		if s.Completed != s.Planned || s.Scores["arith.correct"].Scored != s.Planned {
			t.Errorf("got %+v", s)
		}
		t.Logf("%d rollouts, 64 in flight: %v, %d MiB held at most", s.Planned, time.Since(began).Round(100*time.Millisecond), mib)
	}
	if held[1] > 2*held[0]+64 {
		t.Errorf("it grows with the number of rollouts: %v MiB", held)
	}
}

// A scorer that is slower than the rollouts: what waits for it waits on the disk.
func TestSize_SlowScorer(t *testing.T) {
	t.Parallel()
	const rollouts, kib = 600, 128
	b := newBench(t, habits{Quiet: true, ReplyBytes: kib << 10}, "", "max_concurrent = 32", `
[[plugin]]
name   = "slow"
source = "slow"
[[score]]
plugin = "slow"
`)
	slowPlugin(t, filepath.Join(b.dir, "slow"))
	began := time.Now()
	p := b.start(t, "run", "eval.toml", "-o", "out", "-n", fmt.Sprint(rollouts/4), "-r", "4", "--display", "plain")
	code, mib := p.peak(t, 5*time.Minute)
	if code != 0 {
		t.Fatalf("exit code: got %d want 0\n%s", code, p.stderr.String())
	}
	b.clean(t, 0)
	run, _ := b.run()
	if s := readSummary(t, run); s.Completed != rollouts || s.Scores["slow.slow"].Scored != rollouts {
		t.Errorf("got %+v", s)
	}
	if most := 400; mib > most {
		t.Errorf("%d MiB held at most, want %d or less", mib, most)
	}
	t.Logf("%d replies of %d KiB = %d MiB, scored in %v: %d MiB held at most",
		rollouts, kib, rollouts*kib>>10, time.Since(began).Round(100*time.Millisecond), mib)
}

// slowPlugin writes a scorer that computes for some milliseconds.
func slowPlugin(t *testing.T, dir string) {
	t.Helper()
	root := repoRoot(t)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	const module = "module github.com/wevalr/wevalr"
	for name, text := range map[string]string{
		"go.mod": strings.Replace(string(mod), module,
			"module example.org/slow\nrequire github.com/wevalr/wevalr v0.0.0\nreplace github.com/wevalr/wevalr => "+root, 1),
		"go.sum": string(sum),
		"plugin.toml": `manifest = 1
name     = "slow"
version  = "1.0.0"
provides = ["scorer/v1"]
requires = []
encoding = "msgpack"

[[scorer]]
name  = "slow"
kind  = "rollout"
range = [0, 1]
view  = ["completion"]
`,
		"main.go": `package main

import "github.com/wevalr/wevalr/plugins/sdk"

func init() {
	sdk.Register(sdk.Plugin{Scorers: map[string]sdk.Scorer{"slow": slow}})
}

func slow(r sdk.ScoreRequest) ([]sdk.Score, error) {
	h := uint64(len(r.Episode.Completion))
	for range 2_000_000 {
		h = h*6364136223846793005 + 1442695040888963407
	}
	v := float64(h&1) * 0.5
	return []sdk.Score{{Value: &v}}, nil
}

func main() {}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
