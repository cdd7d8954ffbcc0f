package procwatch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func text(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.Write(l.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

func TestProc_Exiting_DoesNotWaitForThePipe(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		// The sink blocks for ever, the grandchild holds stdout, the prober hangs.
		release := make(chan struct{})
		defer close(release)
		p, _ := child(t, level, Spec{
			Argv: helperArgv("tree", "plain", "exit"), DrainTimeout: 100 * time.Millisecond,
			Sink: func(Line) { <-release },
		})
		within(t, patience, "Exiting", p.Exiting())
		e := ended(t, p)
		if e.Code != 7 || len(e.Survivors) != 1 || e.Survivors[0].Argv[1] != "helper:sleeper" {
			t.Errorf("got %+v", e)
		}
		if took := time.Since(e.End); took > 5*time.Second {
			t.Errorf("Done came %v after the end", took)
		}
		if e.Dropped.Lines != 0 { // the one line is in the sink's hands
			t.Errorf("got %+v dropped", e.Dropped)
		}
	})
}

func TestProc_Sink_SlowNeverBlocksTheChild(t *testing.T) {
	lines := 200_000 // 200 MB
	if testing.Short() {
		lines = 20_000
	}
	release := make(chan struct{})
	got := 0
	p, _ := child(t, Group, Spec{
		Argv: helperArgv("flood", fmt.Sprint(lines)), DrainTimeout: 50 * time.Millisecond,
		Sink: func(Line) { got++; <-release },
	})
	e := ended(t, p)
	close(release)
	<-p.out.queue.ended
	if e.Code != 0 || e.Dropped.Lines+int64(got) != int64(lines) {
		t.Errorf("got code %d, %d lines and %+v dropped of %d", e.Code, got, e.Dropped, lines)
	}
	if want := fmt.Sprintf("%08d ", lines-1); !strings.HasPrefix(string(e.Tail[len(e.Tail)-1].Text), want) {
		t.Errorf("the tail ends in %.20q want %q", e.Tail[len(e.Tail)-1].Text, want)
	}
	if len(e.Tail) > 200 || len(text(e.Tail)) > 65<<10 {
		t.Errorf("the tail has %d lines, %d bytes", len(e.Tail), len(text(e.Tail)))
	}
}

func TestProc_Sink_MayPanic(t *testing.T) {
	n := 0
	p, _ := child(t, Group, Spec{
		Argv: sh("echo a; echo b; echo c; exit 4"),
		Sink: func(Line) { n++; panic("broken") },
	})
	if e := ended(t, p); e.Code != 4 || n != 3 || e.Dropped.Lines != 0 {
		t.Errorf("got code %d, %d calls, %+v dropped", e.Code, n, e.Dropped)
	}
}

func TestProc_Tail_KeepsBytes(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"no trailing newline", `printf 'a\nb'`, "a\nb\n"},
		{"NUL and invalid UTF-8", `printf 'a\000b\377\n'`, "a\x00b\xff\n"},
		{"carriage return and empty line", `printf 'a\r\n\nb\n'`, "a\r\n\nb\n"},
		{"last line before SIGKILL", `echo a; echo last; kill -KILL $$`, "a\nlast\n"},
		{"stdout closed by a living child", `exec 1>&-; echo err >&2; exit 0`, "err\n"},
		{"nothing", `exit 0`, ""},
	}
	each(t, func(t *testing.T, level Containment) {
		for _, tt := range tests {
			p, _ := child(t, level, Spec{Argv: sh(tt.script)})
			if e := ended(t, p); text(e.Tail) != tt.want {
				t.Errorf("%s: got %q want %q", tt.name, text(e.Tail), tt.want)
			}
		}
	})
}

func TestProc_Tail_CutsLongLines(t *testing.T) {
	p, _ := child(t, Group, Spec{Argv: sh("head -c 10000000 /dev/zero | tr '\\000' x; echo; echo end")})
	e := ended(t, p)
	last := e.Tail[len(e.Tail)-1]
	if string(last.Text) != "end" || last.Truncated {
		t.Errorf("got last line %q, truncated %v", last.Text, last.Truncated)
	}
	if l := e.Tail[0]; len(l.Text) != 16<<10 || !l.Truncated {
		t.Errorf("got a piece of %d bytes, truncated %v", len(l.Text), l.Truncated)
	}
}

func TestProc_Tail_StreamsKeepTheirOrder(t *testing.T) {
	p, _ := child(t, Group, Spec{Argv: sh("for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo $i >&2; done")})
	next := map[string]byte{"stdout": '1', "stderr": '1'}
	for i, l := range ended(t, p).Tail {
		if l.Seq != int64(i+1) || l.Text[0] != next[l.Stream] {
			t.Errorf("line %d: got seq %d, %s %q", i, l.Seq, l.Stream, l.Text)
		}
		next[l.Stream]++
	}
	if next["stdout"] != ':' || next["stderr"] != ':' {
		t.Errorf("lines are missing: %v", next)
	}
}

func TestQueue_Put_IsBoundedInBytes(t *testing.T) {
	q := newQueue(func(Line) {}, nil)
	for range 100 {
		q.put(Line{Text: make([]byte, 1<<20)})
	}
	if len(q.lines) != 4 || q.bytes != 4<<20 || q.dropped != (Dropped{96, 96 << 20}) {
		t.Errorf("got %d lines, %d bytes, %+v", len(q.lines), q.bytes, q.dropped)
	}
}

// FuzzSplitter: however a stream is cut into writes, its lines are the same and make up the stream.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"), uint8(2), uint8(1))
	f.Add([]byte("0123456789\n"), uint8(5), uint8(3))
	f.Add([]byte("abcd\n"), uint8(4), uint8(4))
	f.Fuzz(func(t *testing.T, stream []byte, limit, step uint8) {
		run := func(step int) (lines []Line) {
			s := splitter{max: int(limit) + 1, emit: func(b []byte, cut bool) {
				lines = append(lines, Line{Text: b, Truncated: cut})
			}}
			for rest := stream; len(rest) > 0; {
				n := min(step, len(rest))
				s.write(rest[:n])
				rest = rest[n:]
			}
			s.flush()
			return lines
		}
		whole, pieces := run(len(stream)+1), run(int(step)+1)
		var joined []byte
		for i, l := range whole {
			if i >= len(pieces) || !bytes.Equal(l.Text, pieces[i].Text) || l.Truncated != pieces[i].Truncated {
				t.Fatalf("line %d depends on the writes: %v and %v", i, whole, pieces)
			}
			if len(l.Text) > int(limit)+1 || bytes.IndexByte(l.Text, '\n') >= 0 || l.Truncated && len(l.Text) != int(limit)+1 {
				t.Fatalf("line %d: %q, truncated %v", i, l.Text, l.Truncated)
			}
			joined = append(joined, l.Text...)
			if !l.Truncated {
				joined = append(joined, '\n')
			}
		}
		if want := append(bytes.TrimSuffix(stream, []byte("\n")), '\n'); len(stream) > 0 && !bytes.Equal(joined, want) {
			t.Fatalf("got %q want %q", joined, want)
		}
		if len(pieces) != len(whole) {
			t.Fatalf("got %d lines and %d", len(whole), len(pieces))
		}
	})
}

// A sink whose disk is full loses what it is given, and nobody else loses anything.
func TestProc_Sink_DiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no full device: %v", err)
	}
	defer full.Close()
	failed := 0
	p, _ := child(t, Group, Spec{Argv: sh("echo a; echo b; exit 4"), Sink: func(l Line) {
		if _, err := full.Write(l.Text); errors.Is(err, syscall.ENOSPC) {
			failed++
		}
	}})
	if e := ended(t, p); e.Code != 4 || failed != 2 || text(e.Tail) != "a\nb\n" || e.Dropped.Lines != 0 {
		t.Errorf("got %+v, %d writes failed", e, failed)
	}
}
