package realmodel_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// waited checks a run of n rollouts that queued for longer than stall: all ended well, and what a
// person saw was a queue.
func waited(t *testing.T, p *process, n int, stall time.Duration) {
	t.Helper()
	s := p.wait(0)
	if s.Planned != n || s.Completed+s.Limit != n || s.Errors != 0 || s.Owed != 0 {
		t.Errorf("got %+v, want all %d", s, n)
	}
	said := p.stderr.String()
	if strings.Contains(said, "stall") || strings.Contains(said, "error in") {
		t.Errorf("it speaks of a stall:\n%s", said)
	}
	var oldest time.Duration
	for _, m := range regexp.MustCompile(` (\d+) running .* oldest in flight (\S+)`).FindAllStringSubmatch(said, -1) {
		d, err := time.ParseDuration(m[2])
		if err != nil {
			t.Fatal(err)
		}
		oldest = max(oldest, d)
	}
	t.Logf("%d rollouts in %.1f s, stall_after %v, the oldest seen was %v in flight", n, s.Duration, stall, oldest)
	if oldest <= stall {
		t.Errorf("the queue was shown for %v at most: nothing waited for longer than stall_after = %v", oldest, stall)
	}
}

// 64 rollouts at a model that takes one at a time: 63 wait, most of them for longer than stall_after.
func TestQueue_Waits(t *testing.T) {
	m := serve(t, "")
	const n, stall = 64, 15 * time.Second
	p := startEval(t, m.base(), t.TempDir(), "-n", strconv.Itoa(n), "-c", strconv.Itoa(n),
		"--set", "model.sampling.max_tokens=8", "--set", fmt.Sprintf("server.stall_after=%q", stall))
	waited(t, p, n, stall)
}

// oneAtATime is a model that takes as long as latency for each answer, and answers one at a time;
// 0: it takes the calls and never answers.
func oneAtATime(t *testing.T, address string, latency time.Duration) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var turn sync.Mutex
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the client's end is not seen
		if latency == 0 {
			<-r.Context().Done()
			return
		}
		turn.Lock()
		defer turn.Unlock()
		select {
		case <-time.After(latency):
			fmt.Fprint(w, `{"choices": [{"message": {"role": "assistant", "content": "#### 1"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}`)
		case <-r.Context().Done():
		}
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// The same without a model.
func TestQueue_StandIn_Waits(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it waits for seconds")
	}
	t.Parallel()
	const n, stall = 64, 4 * time.Second
	p := startEval(t, oneAtATime(t, "127.0.0.1:0", 150*time.Millisecond).URL+"/v1", t.TempDir(), "-n", strconv.Itoa(n), "-c", strconv.Itoa(n),
		"--set", fmt.Sprintf("server.stall_after=%q", stall))
	waited(t, p, n, stall)
}

// A model that takes calls and answers none is no queue.
func TestQueue_StandIn_Stalls(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it waits for seconds")
	}
	t.Parallel()
	p := startEval(t, oneAtATime(t, "127.0.0.1:0", 0).URL+"/v1", t.TempDir(), "-n", "4", "-c", "4", "--set", `server.stall_after="2s"`)
	if s := p.wait(3); s.Errors != 4 || len(s.Failures) != 1 || s.Failures[0].Kind != "stalled" {
		t.Errorf("got %+v, want 4 stalled", s)
	}
}

// What bounds one call is the client's timeout: the model is at fault then, and not the env-server.
func TestQueue_StandIn_ReadTimeout(t *testing.T) {
	t.Parallel()
	p := startEval(t, oneAtATime(t, "127.0.0.1:0", 0).URL+"/v1", t.TempDir(), "-n", "4", "-c", "4",
		"--set", "model.client.timeout={read=0.5}", "--set", "model.max_retries=0")
	if s := p.wait(3); s.Errors != 4 || len(s.Failures) != 1 || s.Failures[0].Source != "model" || s.Failures[0].Kind != "unavailable" {
		t.Errorf("got %+v, want 4 times model unavailable", s)
	}
}
