package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkServer_Exit is the time from the leader's death to the typed error of the callers, with
// 1,000 in flight: of the last caller in the median run and the 99th percentile of all callers.
func BenchmarkServer_Exit(b *testing.B) {
	const calls = 1000
	var all, last []float64
	for range b.N {
		b.StopTimer()
		s := start(b, spec(b, "ipc", script{}))
		var mu sync.Mutex
		var ends []time.Time
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				_, err := s.Run(context.Background(), order(task{Do: "hold"}), nil)
				now := time.Now()
				if !errors.As(err, new(*ExitedError)) {
					b.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, now)
			})
		}
		run(b, s, task{Do: "wait", When: calls})
		b.StartTimer()
		killed := time.Now()
		if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		wg.Wait()
		slowest := 0.0
		for _, at := range ends {
			ms := float64(at.Sub(killed)) / float64(time.Millisecond)
			all = append(all, ms)
			slowest = max(slowest, ms)
		}
		last = append(last, slowest)
	}
	b.ReportMetric(quantile(all, 0.99), "p99-ms")
	b.ReportMetric(quantile(last, 0.5), "last-ms")
}

func quantile(v []float64, q float64) float64 {
	slices.Sort(v)
	return v[min(len(v)-1, int(q*float64(len(v))))]
}
