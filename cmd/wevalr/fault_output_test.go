package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// nobody is a pipe whose reader has gone.
func nobody(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() { w.Close() })
	return w
}

// command is a wevalr in the bench that is not started yet.
func (b *bench) command(args ...string) *process {
	p := &process{Cmd: exec.Command("wevalr", args...), done: make(chan struct{})}
	p.Dir, p.Env = b.dir, append(os.Environ(), b.env()...)
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	return p
}

// A run goes on when nobody reads its progress any more: `wevalr run … 2>&1 | head -1`.
func TestOutput_ProgressReaderGone_RunGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, habits{}, "", "max_concurrent = 2", soakScore)
	p := b.command("run", "eval.toml", "-o", "out", "-n", "5")
	p.Stderr = nobody(t)
	p.begin(t)
	if code := p.exit(t); code != 0 {
		t.Fatalf("exit code: got %d (%v) want 0\n%s", code, p.ProcessState, p.stdout.String())
	}
	b.clean(t, 0)
	run, _ := b.run()
	if s := readSummary(t, run); s.Completed != 5 {
		t.Errorf("got %+v", s)
	}
}

// A result that nobody can be given is written to the run directory all the same, and is no success.
func TestOutput_ResultReaderGone_SaysSo(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full here: %v", err)
	}
	defer full.Close()
	for name, c := range map[string]struct {
		stdout *os.File
		text   string
	}{"pipe": {nobody(t), "broken pipe"}, "full": {full, "no space left on device"}} {
		b := newBench(t, habits{}, "", "max_concurrent = 2", soakScore)
		for _, extra := range []string{"--display=plain", "--json"} {
			p := b.goOn(t, "-n", "5", extra)
			_ = p.exit(t) // the first run; what follows has nothing to do but to report
			run, _ := b.run()
			p = b.command("resume", run, extra)
			p.Stdout = c.stdout
			p.begin(t)
			if code := p.exit(t); code != 3 || !strings.Contains(p.stderr.String(), c.text) {
				t.Errorf("%s %s: got exit code %d (%v), %q", name, extra, code, p.ProcessState, p.stderr.String())
			}
			if s := readSummary(t, run); s.Completed != 5 || s.ExitCode != 0 {
				t.Errorf("%s: got %+v", name, s)
			}
		}
	}
}

// A run without any of the three standard files is a run like any other.
func TestOutput_AllClosed_RunGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, habits{}, "", "max_concurrent = 2", soakScore)
	p := b.command()
	p.Path, p.Args = "/bin/sh", []string{"sh", "-c", "exec wevalr run eval.toml -o out -n 5 <&- >&- 2>&-"}
	p.begin(t)
	if code := p.exit(t); code != 0 {
		t.Fatalf("exit code: got %d want 0", code)
	}
	b.clean(t, 0)
	run, _ := b.run()
	if s := readSummary(t, run); s.Completed != 5 {
		t.Errorf("got %+v", s)
	}
	for _, e := range journalOf(t, run) {
		if e.T == "" {
			t.Errorf("a line of the journal that is none: %+v", e)
		}
	}
}

// `wevalr ls | head -0`: verbs that only print end as any program does, without a word.
func TestOutput_ListReaderGone_EndsQuietly(t *testing.T) {
	t.Parallel()
	b := newBench(t, habits{}, "", "max_concurrent = 2", soakScore)
	if code := b.goOn(t, "-n", "5").exit(t); code != 0 {
		t.Fatalf("exit code: got %d want 0", code)
	}
	run, _ := b.run()
	for _, args := range [][]string{{"ls", "-o", "out"}, {"ls", "-o", "out", "--json"}, {"show", run}, {"show", run, "arith-1"}} {
		p := b.command(args...)
		p.Stdout = nobody(t)
		p.begin(t)
		_ = p.exit(t)
		ws, ok := p.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || !ws.Signaled() || ws.Signal() != syscall.SIGPIPE || p.stderr.String() != "" {
			t.Errorf("%v: got %v, %q want SIGPIPE and no word", args, p.ProcessState, p.stderr.String())
		}
	}
}
