package display

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/failure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hour is an interval that no test sees the end of: only Close prints the state.
const hour = time.Hour

// play is a run of six rollouts, two of them finished before.
func play(p *Progress) {
	for i := range 5 {
		p.Dispatched("t", i)
	}
	p.Ended("t", 0, failure.Completed, nil)
	p.Ended("t", 1, failure.Limit, nil)
	p.Ended("t", 2, failure.Errored, failure.New(failure.Model, "rate_limited", "slow\ndown"))
	p.Ended("t", 3, failure.Dropped, failure.New(failure.Cancelled, "drain", ""))
	p.Retried()
	p.Scored("b.s", new(1.0))
	p.Scored("b.s", new(0.0))
	p.Scored("b.s", nil)
	p.Scored("a.s", new(0.25))
}

func TestProgress_Plain(t *testing.T) {
	var out bytes.Buffer
	p := Start(&out, Options{Mode: Plain, Interval: hour, Planned: 8, Finished: 2})
	p.Notice("hello")
	play(p)
	p.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || lines[0] != "hello" || lines[1] != "error in t#2: model: rate_limited: slow; down" {
		t.Fatalf("got %q", lines)
	}
	for _, want := range []string{"4/8 finished", "1 running", "1 errors", "1 cancelled", "1 retried", "a.s 0.250 so far · b.s 0.500 so far"} {
		if !strings.Contains(lines[2], want) {
			t.Errorf("got %q, want %q in it", lines[2], want)
		}
	}
}

func TestState_Line(t *testing.T) {
	s := state{planned: 100, finished: 20, running: 3, rate: 2, eta: 40 * time.Second, oldest: 90 * time.Second, oldestKey: "k/1#2"}
	if got, want := s.line(), "20/100 finished · 3 running · 0 errors · 2.0/s · ETA 40s · oldest in flight 1m30s (k/1#2)"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// What is left is what is neither finished nor ended in this attempt, at the rate so far.
func TestProgress_ETA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Start(io.Discard, Options{Interval: hour, Planned: 12, Finished: 2})
		play(p)
		time.Sleep(8 * time.Second)
		p.mu.Lock()
		s := p.state()
		p.mu.Unlock()
		if s.rate != 0.5 || s.eta != 12*time.Second || s.oldest != 8*time.Second || s.oldestKey != "t#4" {
			t.Errorf("got rate %v, ETA %v, oldest %v %s; want 0.5, 12s, 8s t#4", s.rate, s.eta, s.oldest, s.oldestKey)
		}
		p.Close()
	})
}

// An example is shown once a kind, and none of what was cancelled.
func TestProgress_OneExampleAKind(t *testing.T) {
	var out bytes.Buffer
	p := Start(&out, Options{Interval: hour})
	for i := range 5 {
		p.Ended("t", i, failure.Errored, failure.New(failure.Server, "refused", "no"))
		p.Ended("t", i, failure.Errored, failure.New(failure.Server, "exited", "gone"))
		p.Ended("t", i, failure.Dropped, failure.New(failure.Cancelled, "drain", "cancelled"))
	}
	p.Close()
	if got := strings.Count(out.String(), "error in"); got != 2 {
		t.Errorf("got %d examples, want 2:\n%s", got, out.String())
	}
}

func TestProgress_JSON(t *testing.T) {
	var out bytes.Buffer
	p := Start(&out, Options{Mode: JSON, Interval: hour, Planned: 8, Finished: 2})
	p.Notice("a \"notice\"")
	play(p)
	p.Close()
	var all []map[string]any
	for line := range strings.Lines(out.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, v)
	}
	if len(all) != 3 || all[0]["t"] != "notice" || all[0]["text"] != `a "notice"` {
		t.Fatalf("got %v", all)
	}
	last := all[2]
	for key, want := range map[string]any{
		"t": "progress", "planned": 8.0, "finished": 4.0, "running": 1.0, "errors": 1.0, "cancelled": 1.0, "retried": 1.0,
	} {
		if last[key] != want {
			t.Errorf("%s: got %v want %v", key, last[key], want)
		}
	}
	if m, _ := last["means"].(map[string]any); m["b.s"] != 0.5 || m["a.s"] != 0.25 {
		t.Errorf("got means %v", last["means"])
	}
}

func TestProgress_NoneSaysNothing(t *testing.T) {
	var out bytes.Buffer
	p := Start(&out, Options{Mode: None, Interval: time.Millisecond})
	p.Notice("hello")
	play(p)
	p.Close()
	p.Notice("too late")
	if out.Len() != 0 {
		t.Errorf("got %q", out.String())
	}
}

func TestProgress_NoticeAfterClose(t *testing.T) {
	var out bytes.Buffer
	p := Start(&out, Options{Interval: hour})
	p.Close()
	p.Notice("still")
	if !strings.HasSuffix(out.String(), "\nstill\n") {
		t.Errorf("got %q", out.String())
	}
}

// stuck is a terminal that takes nothing until it is let go.
type stuck struct{ gate chan struct{} }

func (s stuck) Write(p []byte) (int, error) { <-s.gate; return len(p), nil }

// A terminal that takes nothing delays no rollout, and notices hardly.
func TestProgress_StuckTerminalDelaysNobody(t *testing.T) {
	w := stuck{make(chan struct{})}
	p := Start(w, Options{Interval: hour})
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Notice("first")
		for i := range 10_000 {
			p.Dispatched("t", i)
			p.Ended("t", i, failure.Errored, failure.New(failure.Plugin, fmt.Sprint("kind_", i), "no"))
		}
		p.Notice("last")
	}()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		t.Error("events wait for the terminal")
	}
	close(w.gate)
	p.Close()
	<-done
}

func TestProgress_Concurrent(t *testing.T) {
	var out bytes.Buffer
	p := Start(&out, Options{Interval: time.Millisecond, Planned: 800})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				key := fmt.Sprint("t", g)
				p.Dispatched(key, i)
				p.Scored("a.s", new(1.0))
				p.Ended(key, i, failure.Completed, nil)
			}
			p.Notice("one is done")
		})
	}
	wg.Wait()
	p.Close()
	if got := out.String(); !strings.Contains(got, "800/800 finished · 0 running · 0 errors") || strings.Count(got, "one is done\n") != 8 {
		t.Errorf("got %s", got)
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain ü 漢 🙂\n\ttab":            "plain ü 漢 🙂\n\ttab",
		"\x1b[31mred\x07":               "�[31mred�",
		"a\rb\x00c\x7fd":                "a�b�c�d",
		"c1 \u009b31m":                  "c1 �31m",
		"bidi \u202e\u2066\u200f\u061c": "bidi ����",
		"lines \u2028\u2029":            "lines ��",
		"bad \xff\xc3(":                 "bad ��(",
		"�":                             "�",
		"":                              "",
	} {
		var whole bytes.Buffer
		if n, err := io.WriteString(Clean(&whole), in); n != len(in) || err != nil {
			t.Errorf("%q: got %d, %v", in, n, err)
		}
		if whole.String() != want {
			t.Errorf("%q: got %q want %q", in, whole.String(), want)
		}
		var bytewise bytes.Buffer // however it is cut
		w := Clean(&bytewise)
		for i := range len(in) {
			if n, err := w.Write([]byte{in[i]}); n != 1 || err != nil {
				t.Fatalf("%q: got %d, %v", in, n, err)
			}
		}
		if bytewise.String() != want {
			t.Errorf("%q byte by byte: got %q want %q", in, bytewise.String(), want)
		}
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestClean_Error(t *testing.T) {
	if n, err := Clean(broken{}).Write([]byte("x")); n != 0 || !errors.Is(err, errBroken) {
		t.Errorf("got %d, %v", n, err)
	}
}

// Nothing harmful comes through, whatever goes in and wherever it is cut.
func FuzzClean(f *testing.F) {
	f.Add([]byte("\x1b]0;title\x07 \u202e"), 3)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		var out bytes.Buffer
		w := Clean(&out)
		at := 0
		if len(in) > 0 {
			at = max(cut, -cut, 0) % len(in)
		}
		for _, part := range [][]byte{in[:max(at, 0)], in[max(at, 0):]} {
			if _, err := w.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range out.String() {
			if harmful(r) {
				t.Fatalf("%q came through as %q", in, out.String())
			}
		}
	})
}

// While a run drains, what is left is counted down, however rarely it is printed else.
func TestProgress_Draining_CountsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := Start(&out, Options{Interval: time.Hour, Planned: 10})
		p.Dispatched("a", 0)
		p.Draining()
		p.Draining() // once is enough
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if got := strings.Count(out.String(), "1 running"); got != 3 {
			t.Errorf("got %d lines in 3.5 s, want 3:\n%s", got, out.String())
		}
		p.Close()
	})
}

// Plugins name their scores, and their kinds of failure: however many, a line stays one that can be read.
func TestProgress_ManyNames(t *testing.T) {
	var out bytes.Buffer
	p := Start(&out, Options{Interval: hour, Planned: 1000})
	for i := range 1000 {
		p.Dispatched("t", i)
		p.Ended("t", i, failure.Errored, failure.New(failure.Plugin, fmt.Sprint("kind", i), "text"))
		p.Scored(fmt.Sprintf("p.s.%04d", i), new(1.0))
	}
	if len(p.means) != maxMeans || len(p.kinds) != maxExamples {
		t.Errorf("%d means and %d kinds are kept", len(p.means), len(p.kinds))
	}
	p.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if got := lines[len(lines)-1]; !strings.HasSuffix(got, "p.s.0007 1.000 so far · and 248 more") {
		t.Errorf("got %q", got)
	}
}
