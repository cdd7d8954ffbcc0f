package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host"
)

// soakTime is how long faults are injected: WEVALR_SOAK (a duration), else 20 minutes with WEVALR_LONG=1,
// else 10 s.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	if text := os.Getenv("WEVALR_SOAK"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("WEVALR_SOAK: %v", err)
		}
		return d
	}
	if long() {
		return 20 * time.Minute
	}
	return 10 * time.Second
}

// long reports whether the tests are to do everything, however long it takes.
func long() bool { return os.Getenv("WEVALR_LONG") == "1" }

const (
	killWevalr = "SIGKILL of wevalr"
	soakFlight = 8 // rollouts in flight
)

// faults are what the soak injects, one about every second.
func faults() []string {
	return []string{
		"exit 0", "exit 23", "signal 9", "signal 11", "stop 300", "stop 1200", "hangup", "half exit", "half hangup",
		"garbage", "slow 500", "refuse", "badreply", killWevalr, killWevalr,
	}
}

// Whatever happens to the env-server, the wire and wevalr itself: every accepted request ends exactly
// once, every rollout is finished exactly once, and nothing is left of any life.
func TestSoak(t *testing.T) {
	t.Parallel()
	limit := soakTime(t)
	end := time.Now().Add(limit)
	injected, total, lives := map[string]int{}, audited{}, map[int]int{}
	var slowest time.Duration // until the warden had swept
	rounds := 0
	for ; rounds == 0 || time.Now().Before(end); rounds++ {
		s := soak{
			bench:    newBench(t, habits{LatencyMS: 200}, soakServer(rounds), fmt.Sprintf("max_concurrent = %d", soakFlight), soakScore),
			injected: injected, lives: lives, end: end,
		}
		for s.life(t) {
		}
		slowest = max(slowest, s.slowest)
		run, _ := s.run()
		total.add(s.audit(t, run, soakFlight))
		if t.Failed() {
			t.Fatalf("round %d: %s", rounds, s.dir)
		}
	}
	n := 0
	for _, k := range injected {
		n += k
	}
	t.Logf("%v: %d rounds, %d faults %v", limit, rounds, n, injected)
	t.Logf("%s", &total)
	t.Logf("exit codes of %d lives: %v (-1: SIGKILL, swept after %v at the latest)", total.attempts, lives, slowest.Round(time.Millisecond))
}

const soakScore = "[[score]]\nplugin = \"arith\""

// soakServer varies how servers are held, round by round.
func soakServer(round int) string {
	text := fmt.Sprintf("transport = %q\ninstances = %d\nsettle = \"500ms\"\n", []string{"ipc", "tcp"}[round/2%2], 1+round/3%2)
	if round%2 == 0 {
		text += "on_exit = \"restart\"\nrestart_window = \"1s\"\n"
	}
	return text
}

// soak is one round: a run, and the lives that it takes.
type soak struct {
	*bench
	injected map[string]int
	lives    map[int]int // by exit code
	end      time.Time   // of the faults
	slowest  time.Duration
}

// life is one life of wevalr; false when the run is complete.
func (s *soak) life(t *testing.T) bool {
	t.Helper()
	p := s.goOn(t, "-n", "50", "-r", "8")
	killed := s.injectUntil(p)
	code := p.exit(t)
	s.lives[code]++
	switch {
	case killed && code == -1:
		s.slowest = max(s.slowest, s.swept(t))
		return true
	case code != 0 && code != 3 && code != 4:
		t.Fatalf("exit code %d:\n%s", code, p.stderr.String())
	}
	s.clean(t, 0)
	return code != 0
}

// injectUntil injects faults until wevalr ends, and tells whether it has killed it.
func (s *soak) injectUntil(p *process) (killed bool) {
	for {
		pause := time.NewTimer(300*time.Millisecond + rand.N(900*time.Millisecond))
		select {
		case <-p.done:
			pause.Stop()
			return killed
		case <-pause.C:
		}
		if time.Now().After(s.end) {
			<-p.done
			return killed
		}
		fault := pick(faults()...)
		if fault == killWevalr {
			_ = p.Process.Kill()
			killed = true
		} else if !s.tell(fault) {
			continue
		}
		s.injected[fault]++
	}
}

// The same in this process: no goroutine and no descriptor is left of a run whose servers die.
func TestSoak_InProcess_LeavesNothing(t *testing.T) {
	b := newBench(t, habits{LatencyMS: 100}, "settle = \"500ms\"\non_exit = \"restart\"\nrestart_window = \"1s\"\n", "max_concurrent = 8", soakScore)
	for _, kv := range b.env() {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	life := func(faults ...string) int {
		done := make(chan int, 1)
		go func() {
			h := host.New(io.Discard, io.Discard, nil, nil)
			var code int
			var err error
			if run, ok := b.run(); ok {
				code, err = h.Resume(context.Background(), host.ResumeOptions{Run: run, Display: "none"})
			} else {
				code, err = h.Run(context.Background(), host.RunOptions{
					Config: filepath.Join(b.dir, "eval.toml"), Root: filepath.Join(b.dir, "out"), Display: "none",
					Overrides: host.Overrides{Set: []string{"tasks.num_tasks=30", "tasks.num_rollouts=8"}},
				})
			}
			if err != nil {
				t.Error(err)
			}
			done <- code
		}()
		for _, f := range faults {
			for ok := false; !ok; {
				select {
				case code := <-done:
					return code
				case <-time.After(200 * time.Millisecond):
					ok = b.tell(f)
				}
			}
		}
		select {
		case code := <-done:
			return code
		case <-time.After(patience):
			t.Fatal("it does not end")
			return -1
		}
	}
	before := goleak.IgnoreCurrent()
	fds := descriptors(t)
	codes := []int{life("signal 9", "refuse", "garbage", "exit 0", "badreply", "half hangup")}
	for len(codes) < 5 && codes[len(codes)-1] != 0 {
		codes = append(codes, life())
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	b.hangUp()
	if now := descriptors(t); !maps.Equal(now, fds) {
		t.Errorf("descriptors: got %v want %v", now, fds)
	}
	b.clean(t, 0)
	run, _ := b.run()
	t.Logf("exit codes %v: %s", codes, b.audit(t, run, 8))
}

// descriptors is what this process has open, by what it is and how often.
func descriptors(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	found, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range found {
		if to, err := os.Readlink(name); err == nil { // the folder's own is gone by now
			kind, _, _ := strings.Cut(to, ":")
			out[kind]++
		}
	}
	return out
}
