package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/wasm"
)

// What the processes that TestScore_SameBytesSameFuel starts are told: the cache to use, the file to write to,
// and "interpreter" for the engine's other half.
const (
	childCache  = "WEVALR_TEST_SAME_CACHE"
	childOut    = "WEVALR_TEST_SAME_OUT"
	childEngine = "WEVALR_TEST_SAME_ENGINE"
)

// TestScore_SameBytesSameFuel: 1,000 requests give equal bytes and burn equal fuel in every process, on one core
// and on two, on the compiler and on the interpreter, be it an instance's first call or its thousandth.
func TestScore_SameBytesSameFuel(t *testing.T) {
	if dir := os.Getenv(childCache); dir != "" {
		lines := sameScores(t, dir, os.Getenv(childEngine) == "interpreter", true)
		if err := os.WriteFile(os.Getenv(childOut), []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := filepath.Join(t.TempDir(), "cache")
	want := sameScores(t, dir, false, false)
	for _, cores := range []string{"1", "2"} {
		for _, engine := range []string{"compiler", "interpreter"} {
			out := filepath.Join(t.TempDir(), "out")
			cmd := exec.Command(os.Args[0], "-test.run=^TestScore_SameBytesSameFuel$", fmt.Sprint("-test.short=", testing.Short()))
			cmd.Env = append(os.Environ(), childCache+"="+dir, childOut+"="+out, childEngine+"="+engine, "GOMAXPROCS="+cores)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s, GOMAXPROCS=%s: %v\n%s", engine, cores, err, text)
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Collect(strings.Lines(string(b)))
			if len(got) != len(want) || len(want) == 0 {
				t.Errorf("%s, GOMAXPROCS=%s: %d scores, want %d", engine, cores, len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("%s, GOMAXPROCS=%s: got %swant %s", engine, cores, got[i], want[i])
				}
			}
		}
	}
}

// summing is a guest whose score and fuel depend on every byte of its request, and which would give another
// score if it found what it left behind.
func summing() *guest {
	const sum = dataAt + 4096
	g := &guest{}
	ptr, n := g.Put(score("0"))
	add := cat(
		op(0x02, 0x40, 0x03, 0x40, 0x20, 1, 0x45, 0x0d, 1, 0x20, 1), i32c(1), op(0x6b, 0x21, 1), // while len-- > 0
		i32c(sum), i32c(sum), op(0x28, 2, 0, 0x20, 1, 0x2d, 0), wasm.ULEB(bufAt), op(0x6a, 0x36, 2, 0, 0x0c, 0, 0x0b, 0x0b))
	g.Body = cat(add, i32c(ptr+n-int32(len("0}]}}"))), i32c(sum), op(0x28, 2, 0), i32c(7), op(0x71), i32c('0'), op(0x6a, 0x3a, 0, 0),
		i64c(int64(ptr)<<32|int64(n)))
	return g
}

// sameScores gives the answer to every request, and its fuel, a line each. Each core takes its share, forwards or
// backwards: what is an instance's first call in one process is its last in another.
func sameScores(t *testing.T, cache string, interpreter, backwards bool) []string {
	t.Helper()
	e, err := NewEngine(Options{CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close(context.Background()) }()
	type set struct {
		source, scorer string
		grants         Grants
	}
	requests, sets := 100, []set{{source(t, summing().Bytes()), "any", Grants{}}}
	if !testing.Short() {
		requests = 1000
		sets = append(
			sets,
			// Looks at clock, randomness, files and its own state.
			set{filepath.Join(hosttest.Root(t), "testplugins/conform-go"), "world", Grants{FS: map[string]string{"dataset": dataset(t)}, Env: &EnvGrant{Sampling: []string{"temperature"}}}},
			set{filepath.Join(hosttest.Root(t), "plugins/gsm8k"), "flexible", Grants{FS: map[string]string{"dataset": dataset(t)}}},
		)
	}
	var lines []string
	for _, s := range sets {
		p := load(t, e, Spec{Source: s.source, Grants: s.grants})
		if interpreter {
			p = onInterpreter(t, p)
		}
		out := make([]string, requests)
		var wg sync.WaitGroup
		for core := range e.nCores {
			wg.Go(func() {
				for i := core; i < requests; i += e.nCores {
					at := i
					if backwards {
						at = requests - 1 - i
					}
					out[at] = sameScore(t, p, s.scorer, at)
				}
			})
		}
		wg.Wait()
		lines = append(lines, out...)
	}
	return lines
}

// sameScore asks for the i-th score.
func sameScore(t *testing.T, p *Plugin, scorer string, i int) string {
	t.Helper()
	text := strings.Repeat(fmt.Sprintf("so it is %d, or not. ", i*i), i%50) + fmt.Sprintf("#### %d", i%7)
	res, err := p.Score(context.Background(), abi.ScoreRequest{
		Scorer: scorer, Seed: int64(i), Episode: *episode(text),
		Task: abi.Task{Key: fmt.Sprint("k", i), Data: map[string]any{"b": i, "a": text, "c": nil}, Target: "3"},
	})
	if err != nil {
		t.Error(err)
		return ""
	}
	b, err := json.Marshal(res.Scores)
	if err != nil || res.Fuel == 0 {
		t.Errorf("fuel %d, %v", res.Fuel, err)
	}
	return fmt.Sprintf("%s %d %s %d\n", p.Alias(), i, b, res.Fuel)
}

// onInterpreter is p on the interpreter.
func onInterpreter(t *testing.T, p *Plugin) *Plugin {
	t.Helper()
	q, err := p.interpreted(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.rt.Close(context.Background()) })
	if err := q.begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestPlugin_SelfCheck(t *testing.T) {
	e := newEngine(t)
	p := load(t, e, Spec{Source: source(t, counting("").Bytes())})
	if err := p.SelfCheck(context.Background(), abi.ScoreRequest{Scorer: "any"}); err != nil {
		t.Error(err)
	}
	// Guests that look at what is made to differ.
	g := scoring(score("1"))
	g.Body = cat(i32c(bufAt+1000), op(0x2d, 0, 0), op(0x04, 0x40, 0x0b), g.Answer(score("1")))
	q := load(t, e, Spec{Source: source(t, g.Bytes())})
	poke(q.image, bufAt+1000)
	if err := q.SelfCheck(context.Background(), abi.ScoreRequest{Scorer: "any"}); err != nil {
		t.Errorf("a branch without instructions burns other fuel: %v", err)
	}
	g = scoring(score("1"))
	g.Body = cat(i32c(bufAt+1000), op(0x2d, 0, 0), op(0x04, 0x40), i32c(0), drop(), op(0x0b), g.Answer(score("1")))
	q = load(t, e, Spec{Source: source(t, g.Bytes())})
	poke(q.image, bufAt+1000)
	err := q.SelfCheck(context.Background(), abi.ScoreRequest{Scorer: "any"})
	if err == nil || !strings.Contains(err.Error(), "after others") {
		t.Errorf("got %v, want the way that differs", err)
	}
}

// poke makes a byte of the image another.
func poke(im *image, at int) {
	if page := &im.pages[at/pageSize]; *page == nil {
		*page = make([]byte, pageSize)
	}
	im.pages[at/pageSize][at%pageSize] = 1
}

// The shipped scorers are the same on both engines.
func TestShipped_SelfCheck(t *testing.T) {
	needBuild(t)
	e := newEngine(t)
	for name, scorer := range map[string]string{"exact-match": "match", "numeric": "correct", "multiple-choice": "correct"} {
		p := load(t, e, Spec{Source: filepath.Join(hosttest.Root(t), "plugins", name)})
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
