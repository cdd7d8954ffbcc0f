package verifiers_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// model is an OpenAI-compatible endpoint that says the word it is asked for: w4, w9, w14, … it never
// gets right. It can hold calls back, so that a test chooses the moment of what comes next.
type model struct {
	*httptest.Server
	mu    sync.Mutex
	free  int           // calls that are answered at once; -1: all
	want  int           // held calls that full waits for
	held  int           // calls held now
	gone  int           // held calls whose caller left
	full  chan struct{} // closed when want calls are held
	gate  chan string   // what held calls say: "" the answer
	empty chan struct{} // closed when full was, and no call is held any more
}

func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{free: -1}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

func (m *model) base() string { return m.URL + "/v1" }

// hold answers the next free calls and then holds calls; the channel is closed when there are want.
func (m *model) hold(free, want int) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free, m.want, m.held, m.gone = free, want, 0, 0
	m.full, m.empty, m.gate = make(chan struct{}), make(chan struct{}), make(chan string)
	return m.full
}

// let answers all that is held and all that comes.
func (m *model) let() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = -1
	close(m.gate)
}

// left is how many held calls lost their caller, once none is held any more.
func (m *model) left(t *testing.T) int {
	t.Helper()
	within(t, m.empty, "end of the held model calls", nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone
}

// pass reports whether this call is to be answered, and with what.
func (m *model) pass(r *http.Request) (say string, ok bool) {
	m.mu.Lock()
	if m.free != 0 {
		m.free = max(m.free-1, -1)
		m.mu.Unlock()
		return "", true
	}
	m.held++
	if m.held == m.want {
		close(m.full)
	}
	gate := m.gate
	m.mu.Unlock()
	select {
	case say = <-gate:
		ok = true
	case <-r.Context().Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !ok {
		m.gone++
	}
	if m.held--; m.held == 0 {
		select {
		case <-m.full:
			select {
			case <-m.empty:
			default:
				close(m.empty)
			}
		default:
		}
	}
	return say, ok
}

type chat struct {
	Messages []struct {
		Role    string
		Content *string
	}
	Tools []any
}

var wanted = regexp.MustCompile(`(?:word w|under n)(\d+)`)

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var body chat
	if err != nil || json.Unmarshal(raw, &body) != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	say, ok := m.pass(r)
	if !ok {
		return
	}
	message, finish := answer(&body, say), "stop"
	if message["tool_calls"] != nil {
		finish = "tool_calls"
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{
		"id": "1", "object": "chat.completion", "created": 1, "model": "stand-in",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
	})
}

func answer(body *chat, say string) map[string]any {
	n, asked := 0, 0
	for _, msg := range body.Messages {
		if msg.Role != "user" || msg.Content == nil {
			continue
		}
		asked++
		if found := wanted.FindStringSubmatch(*msg.Content); found != nil {
			n, _ = strconv.Atoi(found[1])
		}
	}
	last := body.Messages[len(body.Messages)-1]
	out := map[string]any{"role": "assistant", "content": "w" + strconv.Itoa(n)}
	switch {
	case say != "":
		out["content"] = say
	case last.Role == "tool":
		out["content"] = *last.Content
	case len(body.Tools) > 0:
		out["content"] = nil
		out["tool_calls"] = []any{map[string]any{"id": "call_1", "type": "function", "function": map[string]any{
			"name": "lookup", "arguments": fmt.Sprintf(`{"name": "n%d"}`, n),
		}}}
	case !right(n):
		out["content"] = "no"
	}
	return out
}

func right(n int) bool { return n%5 != 4 }

// share is the mean that n tasks w0, w1, … of one turn must have.
func share(n int) float64 {
	sum := 0
	for i := range n {
		if right(i) {
			sum++
		}
	}
	return float64(sum) / float64(n)
}

func TestModel_Answer(t *testing.T) {
	text := func(s string) *string { return &s }
	var b chat
	b.Messages = append(b.Messages, struct {
		Role    string
		Content *string
	}{"user", text("Say the word w4.")})
	if got := answer(&b, "")["content"]; got != "no" {
		t.Errorf("got %v, want a wrong answer", got)
	}
	b.Tools = []any{1}
	if got := fmt.Sprint(answer(&b, "")["tool_calls"]); !strings.Contains(got, "n4") {
		t.Errorf("got %v, want a call of n4", got)
	}
}
