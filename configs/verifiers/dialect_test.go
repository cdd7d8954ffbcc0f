package verifiers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
)

// router is a program: a ROUTER of a few lines that speaks as the file fate says: the dialect of two
// frames that verifiers had before 0.4 (old), also one that dies on the first run (old exit), and what a
// newer verifiers might say (kind, field, tensor). The fate is a file, since a resume must find the same
// command.
func router(fate, address string) int {
	mode, err := os.ReadFile(fate)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 64
	}
	s := zmq4.NewRouter(context.Background())
	defer s.Close()
	if err := s.Listen(address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 64
	}
	for {
		msg, err := s.Recv()
		if errors.Is(err, context.Canceled) {
			return 0
		}
		if err != nil || len(msg.Frames) != 4 {
			continue // a client that left
		}
		peer, id, method, payload := msg.Frames[0], msg.Frames[1], string(msg.Frames[2]), msg.Frames[3]
		for _, frames := range replies(string(mode), id, method, payload) {
			_ = s.Send(zmq4.NewMsgFrom(append([][]byte{peer}, frames...)...))
		}
	}
}

// replies are the messages that answer a request.
func replies(mode string, id []byte, method string, payload []byte) [][][]byte {
	old := strings.HasPrefix(mode, "old")
	reply := func(kind string, m map[string]any) [][]byte {
		b, err := msgpack.Marshal(m)
		if err != nil {
			panic(err)
		}
		if old {
			return [][]byte{id, b}
		}
		return [][]byte{id, []byte(kind), b}
	}
	ok := map[string]any{"success": true, "error": nil}
	if method == "health" {
		if old {
			delete(ok, "error")
		}
		return [][][]byte{reply("reply", ok)}
	}
	if method != "run" {
		return [][][]byte{reply("reply", map[string]any{"success": false, "error": fmt.Sprintf("unknown method '%s'", method)})}
	}
	var req struct {
		Data map[string]any `msgpack:"task_data"`
	}
	if err := msgpack.Unmarshal(payload, &req); err != nil {
		panic(err)
	}
	trace := oldTrace(string(id), req.Data)
	head := map[string]any{"id": string(id), "task": trace["task"], "ok": true, "errors": []any{}}
	switch mode {
	case "old exit":
		fmt.Fprintln(os.Stderr, "router: last words")
		os.Exit(23)
	case "old":
		head["traces"] = []any{trace}
		ok["episode"] = head
		return [][][]byte{reply("", ok)}
	case "kind":
		return [][][]byte{reply("final", ok)}
	case "field":
		return [][][]byte{reply("reply", ok)}
	case "tensor":
		nodes, _ := trace["nodes"].([]any)
		last, _ := nodes[1].(map[string]any)
		last["token_ids"] = map[string]any{"__packed__": true, "data": []byte{1, 2}}
		delta := map[string]any{"trace": trace["id"], "open": trace, "nodes": nodes}
		ok["head"], ok["traces"] = head, []any{map[string]any{"id": trace["id"], "nodes": 2, "calls": 0}}
		return [][][]byte{reply("delta", delta), reply("reply", ok)}
	}
	return nil
}

func oldTrace(id string, data map[string]any) map[string]any {
	return map[string]any{
		"version": 1, "id": id, "verifiers": map[string]any{"version": "0.3.0"},
		"agent": map[string]any{"config": map[string]any{"model": "stand-in"}, "name": "agent", "trainable": true},
		"task":  map[string]any{"type": "Old", "data": data},
		"nodes": []any{
			map[string]any{"parent": nil, "message": map[string]any{"role": "user", "content": data["prompt"]}, "sampled": false},
			map[string]any{"parent": 0, "message": map[string]any{"role": "assistant", "content": data["answer"]}, "sampled": true},
		},
		"calls": []any{}, "errors": []any{}, "rewards": map[string]any{"exact": map[string]any{"score": 1.0, "weight": 1.0}},
		"is_completed": true, "ok": true, "stop_condition": "agent_completed",
	}
}

// dialect is an eval against the router; its fate can be told anew.
func dialect(t *testing.T, fate, lines string, n int) *eval {
	t.Helper()
	dir := t.TempDir()
	e := newEval(t, "http://127.0.0.1:1/v1", fmt.Sprintf("command = [%q, \"router\", %q, \"{address}\"]\n%s",
		os.Args[0], filepath.Join(dir, "fate"), lines), plain(n))
	e.fate(t, filepath.Join(dir, "fate"), fate)
	return e
}

func (e *eval) fate(t *testing.T, path, fate string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(fate), 0o644); err != nil {
		t.Fatal(err)
	}
	e.fatePath = path
}

// The incident: a server of the old dialect answers health and then ends, with code 23, on the first run.
func TestDialect_Old(t *testing.T) {
	for _, transport := range []string{"ipc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			e := dialect(t, "old exit", fmt.Sprintf("transport = %q", transport), 20)
			r := e.run(t, "-c", "4")
			if r.code != 4 || r.summary.Completed != 0 || r.summary.Owed != 20 {
				t.Errorf("got exit code %d, %+v; want 4 and 20 owed", r.code, r.summary)
			}
			for _, want := range []string{"exited with code 23", "router: last words", "server-1-1.log", "wevalr resume"} {
				if !strings.Contains(r.stderr, want) {
					t.Errorf("stderr has no %q:\n%s", want, r.stderr)
				}
			}
			e.fate(t, e.fatePath, "old")
			r = e.resume(t, r)
			r.wantComplete(t, 20)
			wantMean(t, r, 1, 20)
			eachVersion(t, func(t *testing.T, v version) { v.valid(t, r.dir, 20) })
		})
	}
}

// What a newer server might say is an error that names it; the reply is kept.
func TestDialect_Newer(t *testing.T) {
	for _, c := range []struct {
		fate, names string
		kept        bool
	}{
		{"field", "head", true},
		{"tensor", "token_ids", true},
	} {
		t.Run(c.fate, func(t *testing.T) {
			e := dialect(t, c.fate, "", 1)
			r := e.run(t)
			if r.code != 3 || r.summary.Errors != 1 || len(r.summary.Failures) != 1 {
				t.Fatalf("got exit code %d, %+v; want 3 and one error\n%s", r.code, r.summary, r.stderr)
			}
			f := r.summary.Failures[0]
			if f.Source != "server" || f.Kind != "protocol" || !strings.Contains(f.Example, c.names) {
				t.Errorf("got %+v, want server: protocol that names %s", f, c.names)
			}
			raw, _ := filepath.Glob(filepath.Join(r.dir, "raw/*"))
			if (len(raw) > 0) != c.kept {
				t.Errorf("got raw %v, want the reply kept", raw)
			}
		})
	}
}

// An unknown kind of answer ends the connection: nothing after it can be trusted.
func TestDialect_NewerKind(t *testing.T) {
	e := dialect(t, "kind", "settle = \"100ms\"", 1)
	r := e.run(t)
	if r.code != 4 || r.summary.Owed != 1 || !strings.Contains(r.stderr, `kind "final"`) {
		t.Errorf("got exit code %d, %+v; want 4 and the kind named\n%s", r.code, r.summary, r.stderr)
	}
}
