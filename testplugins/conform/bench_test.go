package conform_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/plugin"
)

// BenchmarkScore compares a scoring call of every SDK with the one of Go's in the same run: the scorer
// `length` on a request of 4 KB.
func BenchmarkScore(b *testing.B) {
	for _, c := range []struct {
		name  string
		build func(testing.TB, string) string
	}{{"conform-c", buildC}, {"conform-as", buildAssemblyScript}, {"conform-rust", buildRust}} {
		b.Run(c.name, func(b *testing.B) {
			e := newEngine(b)
			other := load(b, e, module(b, c.name, c.build), plugin.Spec{})
			dir, err := filepath.Abs("../conform-go")
			if err != nil {
				b.Fatal(err)
			}
			golang := load(b, e, dir, plugin.Spec{})
			var took, base time.Duration
			for b.Loop() {
				took += timed(b, other)
				base += timed(b, golang)
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs/score")
			b.ReportMetric(float64(took)/float64(base), "x-of-the-go-guest")
			b.ReportMetric(float64(other.Size()), "bytes")
		})
	}
}

func timed(b *testing.B, p *plugin.Plugin) time.Duration {
	b.Helper()
	start := time.Now()
	if _, err := p.Score(context.Background(), scoreRequest()); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}
