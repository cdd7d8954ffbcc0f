package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
)

// halting is a model that answers the first turn of each rollout; what follows it holds until its caller
// leaves.
type halting struct{ calls, left atomic.Int64 }

func (h *halting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.calls.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if strings.Contains(string(body), "Once more") {
		<-r.Context().Done()
		h.left.Add(1)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",`+
		`"message":{"role":"assistant","content":"w"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
}

// Rollouts that verifiers' own server runs are cancelled in their middle: each is aborted and torn down
// there, both replies have come when Run returns, and no model call goes on or is begun after that.
func TestServer_Verifiers_Cancelled(t *testing.T) {
	python := os.Getenv("WEVALR_VERIFIERS_PYTHON")
	if python == "" {
		t.Skip("WEVALR_VERIFIERS_PYTHON is not set: no Python with verifiers")
	}
	configs, err := filepath.Abs("../../configs/verifiers")
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []string{"1", "2"} {
		t.Run("workers "+workers, func(t *testing.T) {
			const n = 16
			model := &halting{}
			endpoint := httptest.NewServer(model)
			defer endpoint.Close()
			sp := spec(t, "ipc", script{})
			sp.Argv = []string{python, filepath.Join(configs, "serve.py"), "--address", "{address}", "--taskset", "faulty", "--workers", workers}
			sp.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+filepath.Join(configs, "testdata"))
			sp.StartTimeout, sp.StopGrace = 3*hosttest.Patience, hosttest.Patience
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			s, err := Start(ctx, sp)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop(context.Background())
			word := func(turns int) *wire.RunRequest {
				return &wire.RunRequest{
					TaskData: map[string]any{"prompt": "Say the word w.", "answer": "w", "turns": turns}, Model: "m", Sampling: map[string]any{},
					Client: map[string]any{"type": "eval", "base_url": endpoint.URL + "/v1"},
				}
			}
			ends := make(chan ending, n)
			for range n {
				go func() {
					r, err := s.Run(ctx, word(3), nil)
					ends <- ending{r, err}
				}()
			}
			hosttest.Until(t, "the second turn of each", func() bool { return model.calls.Load() == 2*n })

			why := errors.New("the caller has enough")
			cancel(why)
			for range n {
				e := hosttest.Await(t, "an end", ends)
				if !errors.Is(e.err, why) || len(e.reply.Partial) != 1 || e.reply.Partial[0].Completion() != "w" {
					t.Errorf("got %v with %+v, want the cause and the first turn", e.err, e.reply.Partial)
				}
			}
			if got := s.client.Stats(); got.Cancels != n || got.Drained != 2*n || got.Late != 0 || got.Draining != 0 || got.Pending != 0 {
				t.Errorf("got %+v, want both replies of each of %d cancels", got, n)
			}
			hosttest.Until(t, "the end of the model calls", func() bool { return model.left.Load() == n })
			if r, err := s.Run(t.Context(), word(1), nil); err != nil || !r.Episode.OK { // the server lives, and is busy with nothing else
				t.Errorf("got %+v, %v after the cancels", r.Episode, err)
			}
			if got := model.calls.Load(); got != 2*n+1 {
				t.Errorf("got %d model calls, want two of each cancelled rollout and one after", got)
			}
			log, err := os.ReadFile(sp.LogPath)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"on client request", "torn down"} {
				if got := strings.Count(string(log), text); got != n {
					t.Errorf("the server's log has %q %d times, want %d", text, got, n)
				}
			}
		})
	}
}
