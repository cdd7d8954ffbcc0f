package envserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is an OpenAI-compatible endpoint. The model's name selects what it does.
type fake struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []map[string]any
	heads  []http.Header
	// entered gets a value when a slow call has begun, left when its client has gone.
	entered, left chan struct{}
	turn          chan struct{} // closed: it is the turn of the queued
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{entered: make(chan struct{}, 16), left: make(chan struct{}, 16), turn: make(chan struct{})}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// calls is how many requests came so far; last is the newest.
func (f *fake) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.bodies)
}

func (f *fake) last(t *testing.T) (map[string]any, http.Header) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.bodies) == 0 {
		t.Fatal("the endpoint was not called")
	}
	return f.bodies[len(f.bodies)-1], f.heads[len(f.heads)-1]
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var body map[string]any
	if json.Unmarshal(raw, &body) != nil || r.URL.Path != "/v1/chat/completions" || r.Method != http.MethodPost {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.bodies, f.heads = append(f.bodies, body), append(f.heads, r.Header)
	n := len(f.bodies)
	f.mu.Unlock()

	const usage = `,"usage":{"prompt_tokens":12,"completion_tokens":4,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2},"cost":0.25}`
	choice := func(message, finish, tail string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":%s,"finish_reason":%s}]%s}`, message, finish, tail)
	}
	model, arg, _ := strings.Cut(body["model"].(string), ":")
	switch model {
	case "ok":
		choice(`{"role":"assistant","content":"w1"}`, `"stop"`, usage)
	case "flaky": // 500 twice, then an answer
		if n <= 2 {
			http.Error(w, `{"error":{"message":"try later"}}`, http.StatusInternalServerError)
			return
		}
		choice(`{"role":"assistant","content":"at last"}`, `"stop"`, usage)
	case "limited": // 429 once
		if n == 1 {
			if arg == "date" {
				arg = time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
			}
			w.Header().Set("Retry-After", arg)
			http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
			return
		}
		choice(`{"role":"assistant","content":"granted"}`, `"stop"`, usage)
	case "status":
		var code int
		fmt.Sscan(arg, &code)
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"error":{"message":"fake failure %d, your key is %s"}}`, code, r.Header.Get("Authorization"))
	case "redirect":
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	case "html":
		fmt.Fprint(w, "<html><body>Bad gateway</body></html>")
	case "nochoice":
		fmt.Fprint(w, `{"choices":[]}`)
	case "wrapped":
		fmt.Fprint(w, `{"error":{"message":"upstream is full","code":429}}`)
	case "cut":
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"choices":[{"mess`)
	case "drop":
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	case "slow": // headers and a byte, then nothing
		fmt.Fprint(w, "{")
		w.(http.Flusher).Flush()
		f.hang(r)
	case "hang":
		f.hang(r)
	case "queued":
		f.entered <- struct{}{}
		select {
		case <-f.turn:
			choice(`{"role":"assistant","content":"w1"}`, `"stop"`, usage)
		case <-r.Context().Done():
		}
	case "trickle": // a byte at a time, for longer than the client waits for one
		for _, b := range []byte(`{"choices":[{"message":{"role":"assistant","content":"slowly"},"finish_reason":"stop"}]}`) {
			w.Write([]byte{b})
			w.(http.Flusher).Flush()
			<-time.After(25 * time.Millisecond)
		}
	case "chunks": // a chunked answer without its end
		fmt.Fprint(w, `{"choices":[{"mess`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case "sse": // streams, though it was asked not to
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"w1\"}}]}\n\ndata: [DONE]\n\n")
	case "context": // llama.cpp's words
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"This model's maximum context length is 2048 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`)
	case "refusal":
		choice(`{"role":"assistant","content":null,"refusal":"I can not help with that."}`, `"stop"`, usage)
	case "parts":
		choice(`{"role":"assistant","content":[{"type":"thinking","thinking":"?"},{"type":"text","text":"in "},{"type":"text","text":"parts"}]}`, `"stop"`, usage)
	case "badtool":
		choice(`{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]}`, `"tool_calls"`, usage)
	case "huge":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"`)
		for range maxBody >> 20 {
			fmt.Fprint(w, strings.Repeat("x", 1<<20))
		}
		fmt.Fprint(w, `"}}]}`)
	case "length":
		choice(`{"role":"assistant","content":"and then"}`, `"length"`, usage)
	case "filter":
		choice(`{"role":"assistant","content":""}`, `"content_filter"`, usage)
	case "promptfilter":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"The prompt was filtered","code":"content_filter","status":400}}`)
	case "nousage":
		choice(`{"role":"assistant","content":"w1"}`, `"stop"`, "")
	case "oddusage":
		choice(`{"role":"assistant","content":"w1"}`, `"stop"`, `,"usage":{"prompt_tokens":"many"}`)
	case "tools":
		choice(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"lookup","arguments":"{\"key\": \"k1\"}"}}]}`, `"tool_calls"`, usage)
	case "thinking":
		choice(`{"role":"assistant","content":"4","reasoning_content":"2 and 2"}`, `"stop"`, usage)
	case "leak":
		choice(fmt.Sprintf(`{"role":"assistant","content":"you sent %s","reasoning_content":"%s"}`, r.Header.Get("Authorization"), r.Header.Get("X-Team")), `"stop"`, usage)
	default:
		http.Error(w, `{"error":{"message":"no such model"}}`, http.StatusNotFound)
	}
}

// hang waits for the client to leave.
func (f *fake) hang(r *http.Request) {
	f.entered <- struct{}{}
	select {
	case <-r.Context().Done():
		f.left <- struct{}{}
	case <-time.After(30 * time.Second):
	}
}
