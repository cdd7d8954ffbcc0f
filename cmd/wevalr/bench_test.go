package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkProcess times whole processes of the built binary: `version`, and the warm quick start. The
// baseline is /bin/true: what starting any process costs here.
//
//	go test -run '^$' -bench Process ./cmd/wevalr
func BenchmarkProcess(b *testing.B) {
	bin := filepath.Join(b.TempDir(), "wevalr")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	runs := b.TempDir()
	once := func(b *testing.B, argv ...string) time.Duration {
		start := time.Now()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", argv, err, out)
		}
		return time.Since(start)
	}
	b.Run("version", func(b *testing.B) {
		var base, took time.Duration
		for b.Loop() {
			base += once(b, "true")
			took += once(b, bin, "version")
		}
		b.ReportMetric(float64(took.Microseconds())/1e3/float64(b.N), "ms/op")
		b.ReportMetric(float64(took)/float64(base), "x-true")
	})
	b.Run("quickstart", func(b *testing.B) {
		once(b, bin, "run", "../../configs/quickstart.toml", "-o", runs, "--display", "none") // builds and compiles the plugin
		for b.Loop() {
			once(b, bin, "run", "../../configs/quickstart.toml", "-o", runs, "--display", "none")
		}
	})
	_ = os.RemoveAll(runs)
}
