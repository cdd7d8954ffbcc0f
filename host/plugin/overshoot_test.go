package plugin

import (
	"context"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/hostile"
)

// BenchmarkOvershoot is how far runaways of every shape run past their end, and how long they hold up the
// garbage collector meanwhile. In turn with each, Go code spins instead, which the runtime can stop wherever it
// is: what a collection takes beside that is the machine's, and its load's.
//
// stop is how long the world took to stop, of all times that it was stopped: the collector's only wait for
// guests that the whole process feels.
func BenchmarkOvershoot(b *testing.B) {
	e := newEngine(b)
	for _, m := range hostile.Modules() {
		if m.Kind != "fuel" || !m.Loads || m.Op != abi.OpScore {
			continue
		}
		b.Run(m.Name, func(b *testing.B) {
			p := load(b, e, Spec{Source: source(b, m.Wasm), Limits: Limits{Fuel: 1e15, ScoreWall: time.Hour}})
			var guest, native runaway
			for b.Loop() {
				native.run(func(ctx context.Context) {
					for ctx.Err() == nil {
					}
				})
				guest.run(func(ctx context.Context) {
					if _, err := p.Score(ctx, abi.ScoreRequest{Scorer: "any"}); err == nil {
						b.Error("no error")
					}
				})
			}
			guest.report(b, "")
			native.report(b, "native-")
		})
	}
}

// runaway is what came of runs that had to be stopped.
type runaway struct{ over, gc, stop []time.Duration }

// run gives f 20 ms, and collects garbage meanwhile.
func (r *runaway) run(f func(context.Context)) {
	const limit = 20 * time.Millisecond
	runtime.GC()
	before := pauses()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begin, running, done := time.Now(), make(chan struct{}), make(chan time.Duration)
	go func() {
		close(running)
		f(ctx)
		done <- time.Since(begin) - limit
	}()
	<-running
	gc := time.Now()
	runtime.GC()
	r.gc = append(r.gc, time.Since(gc))
	r.over = append(r.over, <-done)
	for i, n := range pauses().Counts {
		for range n - before.Counts[i] {
			r.stop = append(r.stop, time.Duration(before.Buckets[i+1]*1e9))
		}
	}
}

// pauses is the runtime's count of how long the collector waited for the world to stop.
func pauses() metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/stopping/gc:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	return metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: h.Buckets}
}

func (r *runaway) report(b *testing.B, who string) {
	for _, m := range []struct {
		name  string
		times []time.Duration
	}{{"over", r.over}, {"gc", r.gc}, {"stop", r.stop}} {
		slices.Sort(m.times)
		for _, q := range []struct {
			name string
			per  int
		}{{"p50", 500}, {"p99", 990}, {"max", 1000}} {
			at := m.times[max((len(m.times)*q.per+999)/1000-1, 0)] // nearest rank
			b.ReportMetric(float64(at.Microseconds())/1000, who+m.name+"-"+q.name+"-ms")
		}
	}
}
