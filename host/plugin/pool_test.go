package plugin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/codec"
)

// scaled is how often a test does what it does: WEVALR_LONG=1 asks for all of it.
func scaled(long, normal, short int) int {
	switch {
	case testing.Short():
		return short
	case os.Getenv("WEVALR_LONG") == "1":
		return long
	}
	return normal
}

// needClang skips where no plugin of C can be built.
func needClang(tb testing.TB) {
	tb.Helper()
	needBuild(tb)
	for _, command := range []string{"clang-22", "clang"} {
		if _, err := exec.LookPath(command); err == nil {
			return
		}
	}
	tb.Skip("clang is not here")
}

// leaking is a guest that takes 128 KiB of memory in each call and gives none back. It traps unless it finds the
// memory that init left.
func leaking() *guest {
	g := &guest{}
	g.Body = cat(i32c(2), op(0x40, 0), expect(4), op(0x3f, 0), expect(6), // memory.grow(2) gives 4, then there are 6
		i32c(5*65536), op(0x2d, 0, 0), expect(0), i32c(5*65536), i32c(7), op(0x3a, 0, 0), g.Answer(score("1")))
	return g
}

// fourKB asks for a score of an episode of 4 KB.
func fourKB(scorer string) abi.ScoreRequest {
	return abi.ScoreRequest{
		Scorer: scorer, Task: abi.Task{Key: "k", Data: map[string]any{}, Target: "42"},
		Episode: *episode(strings.Repeat("so it is 42, as far as I can see. ", 120) + "#### 42"),
	}
}

// A process that scores for long is no larger than one that has begun, whatever the guest: not the one that
// leaks in every call, nor Go's, whose own memory would end after some ten thousand.
func TestScore_StaysFlat(t *testing.T) {
	for _, tc := range []struct {
		name, scorer        string
		guest               *guest
		folder              string
		need                func(testing.TB)
		long, normal, short int
	}{
		{"by hand", "any", summing(), "", nil, 1_000_000, 10_000, 1000},
		{"leaking", "any", leaking(), "", nil, 100_000, 10_000, 2000},
		{"C", "length", nil, "testplugins/conform-c", needClang, 1_000_000, 10_000, 0},
		{"Go", "strict", nil, "plugins/gsm8k", needBuild, 100_000, 2000, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.need != nil {
				tc.need(t)
			}
			p := loadSource(t, tc.guest, tc.folder)
			req, n := fourKB(tc.scorer), scaled(tc.long, tc.normal, tc.short)
			var held []float64 // MiB, at each tenth
			for i := range n {
				if i > 0 && i%(n/10) == 0 {
					held = append(held, residentMiB(t))
				}
				if _, err := p.Score(context.Background(), req); err != nil {
					t.Fatal(err)
				}
			}
			held = append(held, residentMiB(t))
			t.Logf("%d scores: %.1f MiB held after each tenth of them", n, held)
			if grown := held[len(held)-1] - held[0]; grown > 16 {
				t.Errorf("grown by %.1f MiB", grown)
			}
			// An instance is used again, though not for ever.
			if in := p.pool.idle[0]; in.calls == 0 || in.calls > recycleCalls {
				t.Errorf("the idle instance has served %d calls", in.calls)
			}
		})
	}
}

// loadSource loads a guest made by hand, or one of the repository's folders.
func loadSource(tb testing.TB, g *guest, folder string) *Plugin {
	tb.Helper()
	if g != nil {
		return loadGuest(tb, g)
	}
	return load(tb, newEngine(tb), Spec{Source: filepath.Join(hosttest.Root(tb), folder)})
}

// residentMiB is the process's resident memory after a collection, 0 where it cannot be told.
func residentMiB(tb testing.TB) float64 {
	tb.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	var size, resident float64
	if _, scanErr := fmt.Sscan(string(text), &size, &resident); err != nil || scanErr != nil {
		return 0
	}
	return resident * float64(os.Getpagesize()) / (1 << 20)
}

// nativeLength is what the scorer `length` of the conforming plugins does, request and response included.
func nativeLength(request []byte) []byte {
	q := codec.ReadScoreRequest(codec.NewReader(request))
	e := q.Episodes[0]
	n, words := float64(len(e.Completion)), float64(len(strings.Fields(e.Completion)))
	w := &codec.Writer{}
	w.Map(1)
	w.String("ok")
	codec.WriteScoreResponse(w, abi.ScoreResponse{Scores: []abi.Score{
		{Value: &n, Label: "a label", Explanation: "an explanation", Answer: e.Completion, Metadata: map[string]any{
			"messages": len(e.Messages), "info": len(e.Info), "stop_condition": e.StopCondition,
			"errors": len(e.Errors), "seed": q.Seed, "key": q.Task.Key,
		}},
		{Name: "words", Value: &words},
		{Name: "nothing", Explanation: "skipped"},
	}})
	return w.B
}

// BenchmarkScore is how many episodes of 4 KB a core scores, by the median, in turn with the same function as Go code of this
// process, with what the host does around a call on both sides.
func BenchmarkScore(b *testing.B) {
	for _, tc := range []struct {
		name, folder string
		need         func(testing.TB)
	}{{"Go", "testplugins/conform-go", needBuild}, {"C", "testplugins/conform-c", needClang}} {
		b.Run(tc.name, func(b *testing.B) {
			tc.need(b)
			p := loadSource(b, nil, tc.folder)
			req := fourKB("length")
			var guest, native times
			for b.Loop() {
				guest.add(func() {
					if _, err := p.Score(context.Background(), req); err != nil {
						b.Fatal(err)
					}
				})
				native.add(func() { scoreNatively(b, p, req) })
			}
			b.ReportMetric(1e3/guest.median(), "scores/s")
			b.ReportMetric(1e3/native.median(), "native-scores/s")
			b.ReportMetric(guest.median()/native.median(), "x-of-native")
		})
	}
}

func scoreNatively(b *testing.B, p *Plugin, req abi.ScoreRequest) {
	b.Helper()
	raw, err := encode(abi.EncodingMsgpack, req)
	if err != nil {
		b.Fatal(err)
	}
	var resp abi.ScoreResponse
	e, err := decodeEnvelope(abi.EncodingMsgpack, nativeLength(raw))
	if err == nil {
		err = decode(abi.EncodingMsgpack, e.ok, &resp)
	}
	if err == nil {
		err = p.checkScores(abi.OpScore, p.manifest.scorer("length"), resp.Scores)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkScore_Hand is what the host does around a call whose guest does nothing.
func BenchmarkScore_Hand(b *testing.B) {
	p := loadGuest(b, scoring(score("1")))
	for b.Loop() {
		if _, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReset is what putting a guest back costs, against the same calls without it.
func BenchmarkReset(b *testing.B) {
	for _, tc := range []struct {
		name, folder, scorer string
		need                 func(testing.TB)
	}{{"Go", "plugins/gsm8k", "strict", needBuild}, {"C", "testplugins/conform-c", "length", needClang}} {
		b.Run(tc.name, func(b *testing.B) {
			tc.need(b)
			p := loadSource(b, nil, tc.folder)
			in, err := p.spawn(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			defer in.close()
			call := func() {
				if _, err := p.sample(context.Background(), in, fourKB(tc.scorer)); err != nil {
					b.Fatal(err)
				}
			}
			back := func() {
				if ok, err := p.image.put(context.Background(), in, p.image.size()); !ok || err != nil {
					b.Fatal("cannot be put back", err)
				}
			}
			var reused, fresh times
			for b.Loop() {
				for range 20 {
					reused.add(call)
				}
				for range 20 {
					fresh.add(func() { back(); call() })
				}
				back()
			}
			b.ReportMetric(reused.median(), "ms/reused")
			b.ReportMetric(fresh.median(), "ms/put-back")
			b.ReportMetric(fresh.median()-reused.median(), "ms/more")
			b.ReportMetric(float64(p.image.size())/(1<<20), "MiB")
		})
	}
}

// times are how long something took, each time.
type times []time.Duration

func (t *times) add(f func()) {
	begin := time.Now()
	f()
	*t = append(*t, time.Since(begin))
}

// median is in milliseconds: a busy machine moves it less than a mean.
func (t *times) median() float64 {
	slices.Sort(*t)
	return float64((*t)[len(*t)/2].Nanoseconds()) / 1e6
}

// BenchmarkLoad is loading a plugin whose code is cached.
func BenchmarkLoad(b *testing.B) {
	needBuild(b)
	e := newEngine(b)
	spec := Spec{Source: filepath.Join(hosttest.Root(b), "plugins/gsm8k"), Grants: Grants{FS: map[string]string{"dataset": b.TempDir()}}}
	first := load(b, e, spec)
	var took times
	for b.Loop() {
		var p *Plugin
		took.add(func() {
			var err error
			if p, err = e.Load(context.Background(), spec); err != nil {
				b.Fatal(err)
			}
		})
		_ = p.Close(context.Background())
	}
	b.ReportMetric(took.median(), "ms/load")
	b.ReportMetric(float64(slices.Min(took).Microseconds())/1000, "ms/fastest")
	b.ReportMetric(float64(first.Size())/(1<<20), "MiB")
}

// A cache that is damaged, or cannot be written to, costs time and no plugin.
func TestLoad_CacheFails(t *testing.T) {
	file := source(t, scoring(score("1")).Bytes())
	dir := filepath.Join(t.TempDir(), "cache")
	files := func() []string {
		list, _ := filepath.Glob(filepath.Join(dir, "code", "*", "*"))
		return list
	}
	for _, tc := range []struct {
		name  string
		spoil func() error
	}{
		{"whole", func() error { return nil }},
		{"empty", func() error { return os.Truncate(files()[0], 0) }},
		{"cut", func() error { return os.Truncate(files()[0], 1000) }},
		{"no place", func() error { return os.RemoveAll(filepath.Join(dir, "code")) }},
	} {
		e, err := NewEngine(Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := tc.spoil(); err != nil {
			t.Fatal(err)
		}
		p, err := e.Load(context.Background(), Spec{Source: file})
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		} else if _, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"}); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if p != nil {
			_ = p.Close(context.Background())
		}
		_ = e.Close(context.Background())
	}
}
