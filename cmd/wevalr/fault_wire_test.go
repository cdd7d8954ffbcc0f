package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What an env-server and its wire can suffer in the middle of a run: what is seen, the exit code, and that
// what was finished is kept, by the run's end and by a resume. docs/operations.md names each.
func TestFault_Server(t *testing.T) {
	t.Parallel()
	const restart = "settle = \"300ms\"\non_exit = \"restart\"\n"
	for name, c := range map[string]struct {
		server, order string
		code          int
		kinds         []string // of the failures in the journal; any of them
		text          string
	}{
		"exit 0":             {"", "exit 0", 4, []string{"exited"}, `env-server \(generation 1, pid \d+\) exited with code 0 after \d+\.\d s; \d rollouts? (was|were) in flight; log: out/fault/.*/logs/attempt_1/server-1-1\.log`},
		"exit 23":            {"", "exit 23", 4, []string{"exited"}, `exited with code 23 after (.*\n)*last lines:\n(.*\n)*.*faultserver: last words`},
		"killed":             {"", "signal 9", 4, []string{"exited"}, `was ended by signal 9 \(killed\) after`},
		"segv":               {"", "signal 11", 4, []string{"exited"}, `(was ended by signal 11|exited with code 2) `}, // Go turns it into a panic
		"hangup":             {"settle = \"300ms\"", "hangup", 4, []string{"connection_lost"}, `env-server \(generation 1, pid \d+\): connection lost after \d+\.\d s, though its process lived: .*EOF`},
		"half a frame, exit": {"", "half exit", 4, []string{"exited"}, `exited with code 23 after`},
		"half a frame":       {"settle = \"300ms\"", "half hangup", 4, []string{"connection_lost"}, `connection lost after`},
		"garbage":            {"settle = \"300ms\"", "garbage", 4, []string{"connection_lost"}, `connection lost after .*, though its process lived`},
		"refusal":            {"", "refuse", 3, []string{"peer_error", "env_error"}, `error in arith-\d+#0: .*RuntimeError: no luck`},
		"bad reply":          {"", "badreply", 3, []string{"protocol"}, `error in arith-\d+#0: `},
		"slow wire":          {"", "slow 500", 0, nil, ``},
		"stopped":            {"", "stop 700", 0, nil, ``},
		"stalled rollouts":   {"stall_after = \"300ms\"", "stop 1500", 3, []string{"stalled"}, `error in arith-\d+#0: .*nothing came back for a rollout for \d\.\d s, after \d deltas \(stall_after\)`},
		"hung":               {"stall_after = \"300ms\"\ncancel_grace = \"300ms\"", "stop 15000", 4, []string{"stalled"}, `env-server \(generation 1, pid \d+\): nothing came back for a rollout for \d\.\d s, after \d deltas \(stall_after\)`},
		"restart":            {restart, "signal 9", 0, []string{"exited"}, `env-server 1: generation 2 starts in \d\.\d s`},
		"restart, hangup":    {restart, "hangup", 0, []string{"connection_lost"}, `env-server 1: generation 2 starts in \d\.\d s`},
		"no restart left":    {restart + "max_restarts = 0", "exit 1", 4, []string{"exited"}, `exited with code 1 after`},
		"one of two":         {"instances = 2", "exit 23", 4, []string{"exited"}, `exited with code 23 after`},
		"tcp":                {"transport = \"tcp\"", "exit 23", 4, []string{"exited"}, `exited with code 23 after`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, habits{LatencyMS: 80, HoldAfter: 8}, c.server, "max_concurrent = 4", soakScore)
			p := b.goOn(t, "-n", "24")
			journal := filepath.Join(b.dir, "out", "*", "*", "journal.jsonl")
			awaitMatches(4, regexp.MustCompile(`"t":"finish"`), journal)
			if !b.tell(c.order) {
				t.Fatal("no server lives")
			}
			if slices.Contains(c.kinds, "stalled") { // else what is held could be answered before it is cancelled
				awaitMatches(1, regexp.MustCompile(`"kind":"stalled"`), journal)
			}
			b.told(t)
			if code := p.exit(t); code != c.code {
				t.Errorf("exit code: got %d want %d", code, c.code)
			}
			b.clean(t, 0)
			said := p.stderr.String()
			if !regexp.MustCompile(c.text).MatchString(said) {
				t.Errorf("got\n%s\nwant %s", said, c.text)
			}
			run, _ := b.run()
			if again := "go on with: wevalr resume out/fault/" + filepath.Base(run) + "\n"; (c.code != 0) != strings.HasSuffix(said, again) {
				t.Errorf("the last line: got\n%s", said)
			}
			ends := map[string]int{}
			for _, r := range readLines[record](t, filepath.Join(run, "journal.jsonl")) {
				if r.Failure != nil {
					ends[r.Failure.Kind]++
				}
			}
			for kind, n := range ends {
				if !strings.Contains(strings.Join(c.kinds, " "), kind) {
					t.Errorf("%d rollouts ended as %s", n, kind)
				}
			}
			if len(c.kinds) > 0 && len(ends) == 0 {
				t.Error("no rollout ended in error")
			}
			if s := readSummary(t, run); s.Completed < 4 || s.ExitCode != c.code || (c.code == 0) != (s.Completed == 24) {
				t.Errorf("got %+v", s)
			}
			if raw, _ := filepath.Glob(filepath.Join(run, "raw", "*")); (name == "bad reply") != (len(raw) == 1) {
				t.Errorf("raw/: got %v", raw)
			}
			if c.code != 0 {
				wevalrIn(t, b, 0, "resume", run)
			}
			b.audit(t, run, 4)
		})
	}
}
