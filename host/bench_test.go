package host_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host"
)

// BenchmarkRollouts is the whole job: n rollouts of offline/replay, scored by a Go guest, everything
// durable. CPU is that of all our processes together: wevalr, the warden and the env-server.
//
//	go test -run '^$' -bench Rollouts -benchtime 1x ./host
func BenchmarkRollouts(b *testing.B) {
	for _, n := range []int{5_000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if n > 5_000 && testing.Short() {
				b.Skip("short")
			}
			eval := replayEval(b, n)
			for b.Loop() {
				cpu, start := processCPU(), time.Now()
				h := host.New(io.Discard, io.Discard, nil, os.Exit)
				code, err := h.Run(b.Context(), host.RunOptions{Config: eval, Root: b.TempDir(), Display: "none"})
				if err != nil || code != 0 {
					b.Fatalf("run: exit code %d, %v", code, err)
				}
				b.ReportMetric(float64(processCPU()-cpu)/1e6/float64(n), "ms-cpu/rollout")
				b.ReportMetric(float64(n)/time.Since(start).Seconds(), "rollouts/s")
			}
			b.ReportMetric(float64(peakRSS(b))/(1<<20), "peak-MiB")
		})
	}
}

// replayEval writes an eval of n tasks with a recorded completion each, about 400 bytes long.
func replayEval(b *testing.B, n int) string {
	b.Helper()
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		b.Fatal(err)
	}
	prose := strings.Repeat("Natalia sold some clips to her friends and counts them again. ", 6)
	lines := func(name string, line func(w io.Writer, i int)) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		w := bufio.NewWriter(f) // streamed: the peak that is measured is the run's
		for i := range n {
			line(w, i)
		}
		if err := errors.Join(w.Flush(), f.Close()); err != nil {
			b.Fatal(err)
		}
	}
	lines("data/test.jsonl", func(w io.Writer, i int) {
		fmt.Fprintf(w, `{"question":"How many clips in week %d? %s","answer":"so #### %d"}`+"\n", i, prose, i)
	})
	lines("replay.jsonl", func(w io.Writer, i int) {
		fmt.Fprintf(w, `{"key":"test-%d","completion":"%s#### %d"}`+"\n", i, prose, i)
	})
	source, err := filepath.Abs("../plugins/gsm8k")
	if err != nil {
		b.Fatal(err)
	}
	quoted, _ := json.Marshal(source)
	eval := fmt.Sprintf(`version = 1
name = "bench"
[tasks]
plugin = "gsm8k"
[[score]]
plugin = "gsm8k"
scorer = "strict"
[model]
name = "offline/replay"
options = { file = "replay.jsonl" }
[[plugin]]
name = "gsm8k"
source = %s
grant = { fs.dataset = "data" }
`, quoted)
	path := filepath.Join(dir, "eval.toml")
	if err := os.WriteFile(path, []byte(eval), 0o644); err != nil {
		b.Fatal(err)
	}
	return path
}

// processCPU is user and system time of this process and its ended children, in nanoseconds.
func processCPU() int64 {
	var total int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			total += u.Utime.Nano() + u.Stime.Nano()
		}
	}
	return total
}

// peakRSS is the largest resident size of this process so far, in bytes.
func peakRSS(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Maxrss << 10
}

// BenchmarkInFlight is 500 rollouts of one second each, all in flight at once: how long beyond that second
// they take.
//
//	go test -run '^$' -bench InFlight -benchtime 1x ./host
func BenchmarkInFlight(b *testing.B) {
	source, err := filepath.Abs("../plugins/arith")
	if err != nil {
		b.Fatal(err)
	}
	eval := filepath.Join(b.TempDir(), "eval.toml")
	text := fmt.Sprintf(`version = 1
name = "in-flight"
[tasks]
plugin = "arith"
[[score]]
plugin = "arith"
[model]
name = "offline/demo"
options = { latency = "1s" }
[run]
max_concurrent = 500
[[plugin]]
name = "arith"
source = %q
options = { tasks = 500 }
`, source)
	if err := os.WriteFile(eval, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		start := time.Now()
		h := host.New(io.Discard, io.Discard, nil, os.Exit)
		code, err := h.Run(b.Context(), host.RunOptions{Config: eval, Root: b.TempDir(), Display: "none"})
		if err != nil || code != 0 {
			b.Fatalf("run: exit code %d, %v", code, err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/run")
	}
}
