package zmqio

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const benchPayload = 1024

// BenchmarkRoundTrip measures calls with 1 KiB there and back.
//
// With WEVALR_BENCH_PEERS=1 and libzmq, a C compiler and a Python with pyzmq (WEVALR_BENCH_PYTHON,
// default python3) it also runs a C client and an asyncio client against the same C ROUTER, in turn
// with ours, and reports medians of ratios: x-asyncio and x-c are of requests a second, more is
// better; p99-asyncio and cpu-asyncio are ours to theirs, less is better. These four threads need two
// cores for themselves: on a busy machine the rates are noise unless it runs under chrt -r 1.
func BenchmarkRoundTrip(b *testing.B) {
	for _, inflight := range []int{1, 64, 4096} {
		for _, network := range []string{"ipc", "tcp"} {
			b.Run(fmt.Sprintf("%s/inflight=%d", network, inflight), func(b *testing.B) {
				endpoint := "tcp://127.0.0.1:0"
				if network == "ipc" {
					endpoint = "ipc://" + socketPath(b)
				}
				s := listen(b, endpoint, func(_ context.Context, req *Request) []byte { return req.Payload }, ServerOptions{})
				c, wire := countedClient(b, s.Endpoint())
				b.ReportAllocs()
				b.ResetTimer()
				m := measure(b, c, inflight, b.N)
				m.report(b)
				b.ReportMetric(float64(wire.writes.Load())/float64(b.N), "writes/op")
				b.ReportMetric(float64(wire.reads.Load())/float64(b.N), "reads/op")
			})
		}
	}
	if os.Getenv("WEVALR_BENCH_PEERS") != "1" {
		return
	}
	for _, inflight := range []int{1, 64, 4096} {
		b.Run(fmt.Sprintf("peers/inflight=%d", inflight), func(b *testing.B) { benchmarkPeers(b, inflight) })
	}
}

// numbers are what each client measures of itself.
type numbers struct {
	Rate float64 `json:"req_per_s"`
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	CPU  float64 `json:"cpu_us_per_req"`
}

func (n numbers) report(b *testing.B) {
	b.ReportMetric(n.Rate, "req/s")
	b.ReportMetric(n.P50, "p50-us")
	b.ReportMetric(n.P99, "p99-us")
	b.ReportMetric(n.CPU, "cpu-us/op")
}

// measure does calls with so many in flight.
func measure(b *testing.B, c *Client, inflight, calls int) numbers {
	b.Helper()
	payload := make([]byte, benchPayload)
	took := make([]time.Duration, calls)
	var next atomic.Int64
	var wg sync.WaitGroup
	ctx := b.Context()
	cpu, at := cpuTime(b), time.Now()
	for range min(inflight, calls) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= calls {
					return
				}
				at := time.Now()
				if r, err := c.Call(ctx, "run", payload, nil); err != nil || len(r.Payload) != benchPayload {
					b.Errorf("got %d bytes, %v", len(r.Payload), err)
					return
				}
				took[i] = time.Since(at)
			}
		})
	}
	wg.Wait()
	wall, used := time.Since(at), cpuTime(b)-cpu
	slices.Sort(took)
	micro := func(d time.Duration) float64 { return float64(d) / 1e3 }
	return numbers{
		Rate: float64(calls) / wall.Seconds(), P50: micro(took[calls/2]), P99: micro(took[calls*99/100]),
		CPU: micro(used) / float64(calls),
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// counted counts the system calls of a connection.
type counted struct {
	net.Conn
	reads, writes atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	c.reads.Add(1)
	return c.Conn.Read(p)
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func countedClient(b *testing.B, endpoint string) (*Client, *counted) {
	b.Helper()
	network, addr, err := split(endpoint)
	if err != nil {
		b.Fatal(err)
	}
	nc, err := net.Dial(network, addr)
	if err != nil {
		b.Fatal(err)
	}
	wire := &counted{Conn: nc}
	opt := Options{}.withDefaults()
	zc, g, err := open(wire, false, opt.limits())
	if err != nil {
		b.Fatal(err)
	}
	c := newClient(wire, zc, g, opt)
	b.Cleanup(func() { _ = c.Close() })
	return c, wire
}

func benchmarkPeers(b *testing.B, inflight int) {
	const rounds = 3
	dir := b.TempDir()
	router, client := build(b, dir, "router"), build(b, dir, "client")
	python := cmp.Or(os.Getenv("WEVALR_BENCH_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import zmq.asyncio").CombinedOutput(); err != nil {
		b.Skipf("no pyzmq in %s: %v %s", python, err, out)
	}
	endpoint := startRouter(b, router)
	script := filepath.Join("testdata", "bench", "client.py")
	calls := 20_000
	if inflight == 1 {
		calls = 5_000
	}
	args := []string{endpoint, strconv.Itoa(inflight), strconv.Itoa(calls), strconv.Itoa(benchPayload)}
	var xAsync, xC, p99, cpu []float64
	var last numbers
	for range rounds {
		theirs := runPeer(b, python, append([]string{script}, args...)...)
		c := dial(b, endpoint, Options{})
		last = measure(b, c, inflight, calls)
		_ = c.Close()
		inC := runPeer(b, client, args...)
		b.Logf("asyncio %+v, ours %+v, C %+v", theirs, last, inC)
		xAsync = append(xAsync, last.Rate/theirs.Rate)
		xC = append(xC, last.Rate/inC.Rate)
		p99 = append(p99, last.P99/theirs.P99)
		cpu = append(cpu, last.CPU/theirs.CPU)
	}
	last.report(b)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(xAsync), "x-asyncio")
	b.ReportMetric(median(xC), "x-c")
	b.ReportMetric(median(p99), "p99-asyncio")
	b.ReportMetric(median(cpu), "cpu-asyncio")
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// build compiles a program of testdata/bench.
func build(b *testing.B, dir, name string) string {
	b.Helper()
	bin := filepath.Join(dir, name)
	out, err := exec.Command("cc", "-O2", "-o", bin, filepath.Join("testdata", "bench", name+".c"), "-lzmq").CombinedOutput()
	if err != nil {
		b.Skipf("no C compiler with libzmq: %v %s", err, out)
	}
	return bin
}

// startRouter runs the echo ROUTER until the benchmark ends.
func startRouter(b *testing.B, bin string) (endpoint string) {
	b.Helper()
	cmd := exec.Command(bin, "tcp://127.0.0.1:*")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func runPeer(b *testing.B, name string, args ...string) numbers {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	var n numbers
	if err := json.Unmarshal(out, &n); err != nil {
		b.Fatalf("%s: %v: %s", name, err, out)
	}
	return n
}
