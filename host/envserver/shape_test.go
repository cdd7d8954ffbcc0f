package envserver

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/wire"
)

// shape collects the paths of all keys in v, list elements under [].
func shape(v any, path string, out map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			out[path+"."+k] = true
			shape(e, path+"."+k, out)
		}
	case []any:
		for _, e := range v {
			shape(e, path+"[]", out)
		}
	}
}

// TestRun_ShapeOfVerifiers compares the fields of what we send with what verifiers' server sent for
// the same request: none may be missing, and what is ours alone is listed here.
func TestRun_ShapeOfVerifiers(t *testing.T) {
	dir := hosttest.Shared(t, "fixtures/verifiers-0.4")
	f := newFake(t)
	c := start(t, Options{})
	theirsOnly := []string{ // of their taskset, their harness, their runtime, their scoring
		".task.data.", ".agent.config.harness.request_extra", ".agent.runtime.", ".rewards.", ".metrics.",
	}
	oursOnly := []string{".calls[].tries"}
	for name, model := range map[string]string{"run_ok": "ok", "run_model_error_500": "status:500", "run_model_error_garbage": "html"} {
		read := func(file string) wire.Value {
			b, err := os.ReadFile(filepath.Join(dir, name+"."+file+".msgpack"))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		req, err := wire.DecodeRunRequest(read("request"))
		if err != nil {
			t.Fatal(err)
		}
		req.Model = model
		req.Client["base_url"] = f.URL + "/v1"
		payload, err := req.Encode()
		if err != nil {
			t.Fatal(err)
		}
		reply := send(t, c, "run", payload)
		if told := wire.DecodePartial(reply.Deltas); len(told) != 1 || len(told[0].Pending) != 0 {
			t.Errorf("%s: got %d traces, want one, with nothing pending at its end", name, len(told))
		}
		theirs, ours := map[string]bool{}, map[string]bool{}
		for i := range 5 {
			if _, err := os.Stat(filepath.Join(dir, name+".delta."+strconv.Itoa(i)+".msgpack")); err != nil {
				break
			}
			shape(read("delta."+strconv.Itoa(i)).Any(), "", theirs)
		}
		for _, d := range reply.Deltas {
			shape(wire.Value(d).Any(), "", ours)
		}
		shape(read("reply").Any(), ".reply", theirs)
		shape(wire.Value(reply.Payload).Any(), ".reply", ours)
		for _, path := range slices.Sorted(maps.Keys(theirs)) {
			known := slices.ContainsFunc(theirsOnly, func(s string) bool { return strings.Contains(path, s) })
			if base := strings.TrimPrefix(path[strings.LastIndexByte(path, '.'):], "."); known && strings.Contains(path, ".task.data.") {
				known = slices.Contains([]string{"turns", "use_tool", "sleep_s", "exit_code", "kill_signal", "raise_in", "info_tensor"}, base)
			}
			if !ours[path] && !known {
				t.Errorf("%s: %s is missing", name, path)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(ours)) {
			if !theirs[path] && !slices.Contains(oursOnly, path) {
				t.Errorf("%s: %s is not in verifiers", name, path)
			}
		}
	}
}
