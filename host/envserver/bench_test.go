package envserver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/zmqio"
)

// BenchmarkReplay is a rollout of offline/replay from request to reply, over ipc, client included.
func BenchmarkReplay(b *testing.B) {
	h, err := newHandler(Options{Model: Model{Name: "offline/replay", Options: map[string]any{"file": benchFile(b)}}, Getenv: func(string) string { return "" }, Version: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	z, err := zmqio.Listen(hosttest.Socket(b), h.handle, zmqio.ServerOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer z.Close()
	c, err := zmqio.Dial(b.Context(), z.Endpoint(), zmqio.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	r := request("offline/replay", "")
	payload, err := r.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetParallelism(32)
	start := cpuTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Call(b.Context(), "run", payload, &zmqio.Progress{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-start)/time.Microsecond)/float64(b.N), "cpu-µs/op")
}

func benchFile(b *testing.B) string {
	b.Helper()
	var s strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&s, `{"key":"k-%d","completion":%q}`+"\n", i, strings.Repeat("so it goes ", 40))
	}
	return writeReplay(b, s.String())
}
