package journal

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
)

// writeUntilKilled is the other process: it dispatches and finishes rollouts, and says so, for ever.
func writeUntilKilled(root string) {
	r, err := Create(root, "demo", epoch(), testIdentity())
	if err == nil {
		_, err = r.SpoolTasks(testTasks(16))
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	for i := range 16 {
		go func() {
			key := fmt.Sprintf("t/%d", i)
			say := func(what string, index int, err error) {
				if err != nil {
					os.Exit(1)
				}
				mu.Lock()
				defer mu.Unlock()
				fmt.Println(what, key, index)
			}
			for index := range maxIndex {
				say("sent", index, r.Dispatch(key, index, 1, epoch()))
				say("done", index, finish1(r, key, index, 1, failure.Completed))
			}
		}()
	}
	select {}
}

// TestRun_SIGKILL kills a real process in the middle of its commits.
func TestRun_SIGKILL(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, after := range []int{1, 50, 333, 1000} {
		root := t.TempDir()
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), "WEVALR_JOURNAL_WRITER="+root)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		l, sent := &ledger{acked: map[string]string{}}, map[string]int{} // the last index of each task
		s := bufio.NewScanner(out)
		for n := 0; s.Scan(); {
			var what, key string
			var index int
			if _, err := fmt.Sscanf(s.Text(), "%s %s %d", &what, &key, &index); err != nil {
				t.Fatalf("%q: %v", s.Text(), err)
			}
			if what == "sent" {
				sent[key] = index
				continue
			}
			l.ack(key, index, 1)
			if n++; n == after { // what it still says until it is dead counts too
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the writer ended by itself: %v", err)
		}
		if len(l.acked) < after {
			t.Fatalf("got %d acknowledgements, want at least %d", len(l.acked), after)
		}
		dirs, err := List(root)
		if err != nil || len(dirs) != 1 {
			t.Fatalf("got %v, %v", dirs, err)
		}
		r, err := Open(dirs[0])
		if err != nil {
			t.Fatal(err)
		}
		for key, index := range sent {
			if task, _ := r.Tasks().Ordinal(key); r.State(task, index).Tries != 1 {
				t.Errorf("%s#%d was sent, and the next attempt would give the same try again", key, index)
			}
		}
		for id, want := range l.acked {
			key, index := "", 0
			if _, err := fmt.Sscanf(strings.Replace(id, "t/", "t_", 1), "t_%s", &key); err != nil {
				t.Fatal(err)
			}
			part := strings.Split(key, "/")
			fmt.Sscan(part[1], &index)
			task, _ := r.Tasks().Ordinal("t/" + part[0])
			raw, err := r.Episode(r.State(task, index).Episode)
			if err != nil || string(raw) != want {
				t.Fatalf("%s: got %q, %v, want %q", id, raw, err, want)
			}
		}
		mustClose(t, r)
	}
}
