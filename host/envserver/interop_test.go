package envserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/internal/hosttest"
)

// TestInterop_EnvClient lets verifiers' own client assemble, validate and dump our episodes. It
// needs WEVALR_VERIFIERS_PYTHON, a Python with verifiers 0.4.0.
func TestInterop_EnvClient(t *testing.T) {
	python := os.Getenv("WEVALR_VERIFIERS_PYTHON")
	if python == "" {
		t.Skip("WEVALR_VERIFIERS_PYTHON is not set: no Python with verifiers 0.4.0")
	}
	f := newFake(t)
	endpoint := hosttest.Socket(t)
	startSigning(t, Options{Endpoint: endpoint}, 20*time.Millisecond)
	models := []string{"ok", "nousage", "length", "refusal", "filter", "tools", "thinking", "trickle", "status:400", "html", "offline/echo", "offline/replay"}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"testdata/envclient.py", endpoint, f.URL + "/v1"}, models...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	type line struct {
		Model, Error, Stop string
		Deltas             int
		OK, Hash, Dump     bool
		Text               *string
		Tokens             []int64
		Status             *int
	}
	lines := bufio.NewScanner(out)
	got := map[string]line{}
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if l.Model == "hang" {
			hosttest.Await(t, "model call", f.entered)
			fmt.Fprintln(in)
			hosttest.Await(t, "end of the HTTP call after EnvClient's cancel", f.left)
			fmt.Fprintln(in)
			break
		}
		got[l.Model] = l
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, model := range models {
		l := got[model]
		switch model {
		case "offline/replay":
			if l.Error == "" {
				t.Errorf("%s: got %+v, want a refusal", model, l)
			}
		case "status:400", "html":
			if l.OK || l.Stop != "provider_error" || l.Status == nil || l.Deltas < 4 || !l.Hash || !l.Dump {
				t.Errorf("%s: got %+v, want a provider_error", model, l)
			}
		default:
			if model == "trickle" && l.Deltas < 6 {
				t.Errorf("%s: got %d deltas, want signs of waiting among them", model, l.Deltas)
			}
			if !l.OK || l.Stop != "agent_completed" || l.Deltas < 4 || !l.Hash || !l.Dump {
				t.Errorf("%s: got %+v, want an episode that is ok", model, l)
			}
		}
	}
	if l := got["ok"]; l.Text == nil || *l.Text != "w1" || fmt.Sprint(l.Tokens) != "[12 4 16]" {
		t.Errorf("ok: got %+v", l)
	}
}
