package host_test

import (
	"encoding/json"
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
	var tasks, replay strings.Builder
	prose := strings.Repeat("Natalia sold some clips to her friends and counts them again. ", 6)
	for i := range n {
		fmt.Fprintf(&tasks, `{"question":"How many clips in week %d? %s","answer":"so #### %d"}`+"\n", i, prose, i)
		fmt.Fprintf(&replay, `{"key":"test-%d","completion":%q}`+"\n", i, prose+fmt.Sprintf("#### %d", i))
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	source, err := filepath.Abs("../plugins/gsm8k")
	if err != nil {
		b.Fatal(err)
	}
	quoted, _ := json.Marshal(source)
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		b.Fatal(err)
	}
	write("data/test.jsonl", tasks.String())
	write("replay.jsonl", replay.String())
	write("eval.toml", fmt.Sprintf(`version = 1
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
`, quoted))
	return filepath.Join(dir, "eval.toml")
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
