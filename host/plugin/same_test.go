package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
)

// sameCalls is how often the same score is asked for.
const sameCalls = 1000

// childCache is set in the processes that TestScore_SameBytesSameFuel starts: the cache to use.
const childCache = "WEVALR_TEST_SAME_CACHE"

// TestScore_SameBytesSameFuel: equal calls give equal scores and burn equal fuel, the first and the
// thousandth, in two processes, on one core and on two.
func TestScore_SameBytesSameFuel(t *testing.T) {
	needBuild(t)
	if dir := os.Getenv(childCache); dir != "" {
		_, _ = fmt.Fprintln(os.Stdout, "same:", sameScores(t, dir))
		return
	}
	dir := filepath.Join(t.TempDir(), "cache")
	want := sameScores(t, dir)
	for _, cores := range []string{"1", "2"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestScore_SameBytesSameFuel$", "-test.v")
		cmd.Env = append(os.Environ(), childCache+"="+dir, "GOMAXPROCS="+cores)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("GOMAXPROCS=%s: %v\n%s", cores, err, out)
		}
		if !strings.Contains(string(out), "same: "+want+"\n") {
			t.Errorf("GOMAXPROCS=%s: got\n%s\nwant %s", cores, out, want)
		}
	}
}

// sameScores asks for the same scores again and again, with others between, and gives what all of them
// were.
func sameScores(t *testing.T, cache string) string {
	t.Helper()
	e, err := NewEngine(Options{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(context.Background()) }()
	h := sha256.New()
	for _, s := range []struct {
		dir, scorer, target, completion string
		grants                          Grants
	}{
		// Looks at clock, randomness, files and its own state.
		{"testplugins/conform-go", "world", "", "", Grants{FS: map[string]string{"dataset": dataset(t)}, Env: &EnvGrant{Sampling: []string{"temperature"}}}},
		{"plugins/exact-match", "match", "42", "so it is 42", Grants{}},
	} {
		p, err := e.Load(context.Background(), Spec{Source: filepath.Join(repo(t), s.dir), Grants: s.grants})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(seed int64, completion string) string {
			res, err := p.Score(context.Background(), abi.ScoreRequest{
				Scorer: s.scorer, Seed: seed, Task: abi.Task{Key: "k", Data: map[string]any{}, Target: s.target}, Episode: *episode(completion),
			})
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(res.Scores)
			if err != nil {
				t.Fatal(err)
			}
			if res.Fuel == 0 {
				t.Fatal("no fuel is counted")
			}
			return fmt.Sprintf("%s %d", b, res.Fuel)
		}
		first := ask(7, s.completion)
		for i := range sameCalls {
			if i%10 == 0 {
				ask(int64(i), long(i*100))
			}
			if again := ask(7, s.completion); again != first {
				t.Fatalf("%s: call %d gave\n%s\nthe first\n%s", s.dir, i, again, first)
			}
		}
		_, _ = fmt.Fprintln(h, first)
		if err := p.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestPlugin_SelfCheck(t *testing.T) {
	e := newEngine(t)
	p := load(t, e, Spec{Source: source(t, counting("").bytes())})
	if err := p.SelfCheck(context.Background(), abi.ScoreRequest{Scorer: "any"}); err != nil {
		t.Error(err)
	}
	// Guests that look at what is made to differ.
	g := scoring(score("1"))
	g.body = cat(i32c(bufAt+1000), op(0x2d, 0, 0), op(0x04, 0x40, 0x0b), g.answer(score("1")))
	q := load(t, e, Spec{Source: source(t, g.bytes())})
	q.image.memory[bufAt+1000] = 1
	if err := q.SelfCheck(context.Background(), abi.ScoreRequest{Scorer: "any"}); err != nil {
		t.Errorf("a branch without instructions burns other fuel: %v", err)
	}
	g = scoring(score("1"))
	g.body = cat(i32c(bufAt+1000), op(0x2d, 0, 0), op(0x04, 0x40), i32c(0), drop(), op(0x0b), g.answer(score("1")))
	q = load(t, e, Spec{Source: source(t, g.bytes())})
	q.image.memory[bufAt+1000] = 1
	err := q.SelfCheck(context.Background(), abi.ScoreRequest{Scorer: "any"})
	if err == nil || !strings.Contains(err.Error(), "after others") {
		t.Errorf("got %v, want the way that differs", err)
	}
}

// The shipped scorers are the same on both engines.
func TestShipped_SelfCheck(t *testing.T) {
	needBuild(t)
	e := newEngine(t)
	for name, scorer := range map[string]string{"exact-match": "match", "numeric": "correct", "multiple-choice": "correct"} {
		p := load(t, e, Spec{Source: filepath.Join(repo(t), "plugins", name)})
		if p.manifest.scorer(scorer) == nil {
			scorer = p.Scorers()[0].Name
		}
		err := p.SelfCheck(context.Background(), abi.ScoreRequest{
			Scorer: scorer, Task: abi.Task{Key: "k", Data: map[string]any{}, Target: "42"}, Episode: *episode("it is 42"),
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkReset is what putting a Go guest back costs, against the same calls without it.
func BenchmarkReset(b *testing.B) {
	needBuild(b)
	p := load(b, newEngine(b), Spec{Source: filepath.Join(repo(b), "plugins/gsm8k"), Grants: Grants{FS: map[string]string{"dataset": b.TempDir()}}})
	in, err := p.spawn(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer in.close()
	req := abi.ScoreRequest{
		Scorer: "strict", Task: abi.Task{Key: "k", Data: map[string]any{}, Target: "42"}, Episode: *episode(strings.Repeat("so it is 42. ", 300) + "#### 42"),
	}
	call := func() {
		if _, err := p.sample(context.Background(), in, req); err != nil {
			b.Fatal(err)
		}
	}
	spread := [2]int64{}
	for b.Loop() {
		for range 50 {
			spread[0] += timed(call)
		}
		for range 50 {
			spread[1] += timed(func() {
				if ok, err := p.image.put(in); !ok || err != nil {
					b.Fatal("cannot be put back", err)
				}
				call()
			})
		}
		if ok, err := p.image.put(in); !ok || err != nil {
			b.Fatal("cannot be put back", err)
		}
	}
	n := float64(50 * b.N)
	b.ReportMetric(float64(spread[0])/n/1e6, "ms/reused")
	b.ReportMetric(float64(spread[1])/n/1e6, "ms/put-back")
	b.ReportMetric(float64(len(p.image.memory))/(1<<20), "MiB")
}

// timed is how many nanoseconds f takes.
func timed(f func()) int64 {
	begin := time.Now()
	f()
	return time.Since(begin).Nanoseconds()
}

// BenchmarkLoad is loading a plugin whose code is cached.
func BenchmarkLoad(b *testing.B) {
	needBuild(b)
	e := newEngine(b)
	spec := Spec{Source: filepath.Join(repo(b), "plugins/gsm8k"), Grants: Grants{FS: map[string]string{"dataset": b.TempDir()}}}
	load(b, e, spec)
	for b.Loop() {
		p, err := e.Load(context.Background(), spec)
		if err != nil {
			b.Fatal(err)
		}
		_ = p.Close(context.Background())
	}
}
