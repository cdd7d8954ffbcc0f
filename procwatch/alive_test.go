package procwatch

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestLiveness_Watch(t *testing.T) {
	const ok, fails, hangs, sleeps, asleep = "ok", "fails", "hangs", "machine sleeps", "we are stopped"
	refused := errors.New("refused")
	tests := map[string]struct {
		rounds []string // the last one again and again
		after  int      // rounds until the verdict; 0: none in 100
		last   error
	}{
		"alive":                       {[]string{ok}, 0, nil},
		"refuses":                     {[]string{fails}, 3, refused},
		"hangs":                       {[]string{hangs}, 3, nil},
		"an answer resets":            {[]string{fails, fails, ok, fails, fails, ok, fails}, 9, refused},
		"a sleeping machine":          {[]string{fails, sleeps, sleeps, fails, sleeps, fails}, 6, refused},
		"a stopped host":              {[]string{asleep, asleep, asleep, asleep, ok}, 0, nil},
		"an answer in a voided round": {[]string{fails, fails, ok, asleep, fails, fails, fails}, 7, refused},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var rounds atomic.Int64
				kind := func() string { return tt.rounds[min(int(rounds.Load()), len(tt.rounds))-1] }
				ctx, cancel := context.WithTimeout(t.Context(), 100*15*time.Second)
				defer cancel()
				l := Liveness{Probe: func(ctx context.Context) error {
					switch kind() {
					case ok:
						return nil
					case hangs:
						<-ctx.Done()
						<-t.Context().Done() // and does not obey
					case asleep:
						<-ctx.Done()
					}
					return refused
				}}.withDefaults()
				last, dead := l.watch(ctx, func() stopwatch {
					rounds.Add(1)
					watch := newStopwatch()
					return func() (mono, wall time.Duration) {
						mono, wall = watch()
						switch kind() {
						case sleeps:
							wall += time.Hour
						case asleep:
							mono, wall = mono+time.Minute, wall+time.Minute
						}
						return mono, wall
					}
				})
				if dead != (tt.after > 0) || dead && int(rounds.Load()) != tt.after || dead && !errors.Is(last, tt.last) {
					t.Errorf("got %v, dead %v after %d rounds, want %d", last, dead, rounds.Load(), tt.after)
				}
			})
		})
	}
}

// A jump of the wall clock backwards voids nothing, and one forwards only the round it is in.
func TestLiveness_Suspended(t *testing.T) {
	l := Liveness{Timeout: 5 * time.Second}
	for _, tt := range []struct {
		mono, wall time.Duration
		want       bool
	}{
		{0, 0, false},
		{5 * time.Second, 5 * time.Second, false},
		{5900 * time.Millisecond, -time.Hour, false},
		{7 * time.Second, -time.Hour, true},
		{time.Second, time.Hour, true},
	} {
		if got := l.suspended(tt.mono, tt.wall); got != tt.want {
			t.Errorf("%v, %v: got %v", tt.mono, tt.wall, got)
		}
	}
}

// echoProbe asks a child of the helper "echo" over its socket.
func echoProbe(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return err
		}
		defer c.Close()
		if end, ok := ctx.Deadline(); ok {
			_ = c.SetDeadline(end)
		}
		_, err = c.Read(make([]byte, 1))
		return err
	}
}

func TestProc_Liveness_StoppedChildIsUnresponsive(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		path := filepath.Join(t.TempDir(), "s")
		answers := make(chan error, 1024)
		ask := echoProbe(path)
		p, lines := child(t, level, Spec{
			Argv: helperArgv("echo", path), Grace: patience, Prober: ask,
			Liveness: Liveness{Every: 5 * time.Millisecond, Timeout: 300 * time.Millisecond, Misses: 2, Probe: func(ctx context.Context) error {
				err := ask(ctx)
				answers <- err
				return err
			}},
		})
		within(t, patience, "first line", lines)
		for range 3 {
			if err := within(t, patience, "an answer", answers); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		e := ended(t, p)
		if e.Cause != CauseUnresponsive || e.Requested || e.Signal != syscall.SIGTERM || e.Reason != "unresponsive" {
			t.Errorf("got %+v", e)
		}
	})
}

func TestProc_Liveness_StartsWhenReady(t *testing.T) {
	asked := make(chan struct{}, 1024)
	p, lines := child(t, Group, Spec{
		Argv: helperArgv("on-term"), Prober: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		Liveness: Liveness{Every: time.Nanosecond, Misses: 1, Probe: func(context.Context) error {
			asked <- struct{}{}
			return errors.New("not ready")
		}},
	})
	within(t, patience, "first line", lines)
	if e, err := p.Stop(t.Context(), ""); err != nil || e.Cause != CauseStopped || len(asked) > 0 {
		t.Errorf("got %+v, %v, asked %d times", e, err, len(asked))
	}
}
