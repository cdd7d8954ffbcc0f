//go:build unix

package journal

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
)

// BenchmarkRun_Finish commits episodes of 5 KB for 128 concurrent callers, dispatch included. The goal
// is cpu-µs/record ≤ 60; records/sync says how well commits are grouped.
func BenchmarkRun_Finish(b *testing.B) {
	r := newRun(b, 128)
	syncs := new(atomic.Int64)
	mustClose(b, r)
	r, err := open(r.Dir(), countSyncs(syncs))
	if err != nil {
		b.Fatal(err)
	}
	ep := []byte(`{"pad":"` + strings.Repeat("x", 5<<10) + `"}`)
	var caller atomic.Int64
	before := cpu(b)
	b.ResetTimer()
	b.SetParallelism(64) // × GOMAXPROCS
	b.RunParallel(func(pb *testing.PB) {
		key := fmt.Sprintf("t/%d", caller.Add(1)%128)
		lap := int(caller.Load()) / 128 * (maxIndex / 8) // more processors, more callers of a task
		for i := lap; pb.Next(); i++ {
			now := time.Now()
			if err := r.Dispatch(key, i, 1, now); err != nil {
				b.Error(err)
				return
			}
			f := Finish{Key: key, Index: i, Try: 1, Outcome: failure.Completed, Start: now, End: now}
			if _, err := r.Finish(b.Context(), f, ep); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/record")
	b.ReportMetric(float64(b.N)/float64(syncs.Load()/2), "records/commit")
	mustClose(b, r)
}

// BenchmarkRead loads a journal of 2 × 20,000 lines.
func BenchmarkRead(b *testing.B) {
	r := newRun(b, 20_000)
	for i := range 20_000 {
		key := fmt.Sprintf("t/%d", i)
		if err := r.Dispatch(key, 0, 1, epoch()); err != nil {
			b.Fatal(err)
		}
		f := Finish{Key: key, Try: 1, Outcome: failure.Dropped, Failure: failure.New(failure.Cancelled, "drain", "stopped"), Start: epoch(), End: epoch()}
		e, err := finishEntry(&f, nil)
		if err != nil {
			b.Fatal(err)
		}
		e.sync = false // only the reading is measured
		if err := r.queueLine(e); err != nil {
			b.Fatal(err)
		}
	}
	mustClose(b, r)
	for b.Loop() {
		v, err := Read(r.Dir())
		if err != nil {
			b.Fatal(err)
		}
		if c := v.Counts(1); c.Cancelled != 20_000 {
			b.Fatalf("counts: %+v", c)
		}
		v.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/40_000, "ns/line")
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// countingDisk counts the syncs of appended files.
type countingDisk struct {
	osDisk
	n *atomic.Int64
}

type countingFile struct {
	appender
	n *atomic.Int64
}

func countSyncs(n *atomic.Int64) func(*os.Root) disk {
	return func(root *os.Root) disk { return countingDisk{osDisk{root}, n} }
}

func (d countingDisk) Append(name string) (appender, error) {
	f, err := d.osDisk.Append(name)
	return countingFile{f, d.n}, err
}

func (f countingFile) Sync() error {
	f.n.Add(1)
	return f.appender.Sync()
}
