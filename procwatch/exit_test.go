package procwatch

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProc_Exit_SaysCodeXorSignal(t *testing.T) {
	tests := []struct {
		script string
		code   int
		signal syscall.Signal
	}{
		{"exit 0", 0, 0},
		{"exit 3", 3, 0},
		{"exit 255", 255, 0},
		{"exit 137", 137, 0},
		{"kill -KILL $$", -1, syscall.SIGKILL},
		{"kill -SEGV $$", -1, syscall.SIGSEGV},
		{"kill -ABRT $$", -1, syscall.SIGABRT},
	}
	each(t, func(t *testing.T, level Containment) {
		for _, tt := range tests {
			p, _ := child(t, level, Spec{Argv: sh("ulimit -c 0; " + tt.script), Dir: t.TempDir()})
			e := ended(t, p)
			if e.Code != tt.code || e.Signal != tt.signal || e.Signaled != (tt.signal != 0) {
				t.Errorf("%s: got code %d, signal %d, signaled %v", tt.script, e.Code, e.Signal, e.Signaled)
			}
			if e.Cause != CauseSelf || e.Requested || e.Escalated || e.CoreDumped {
				t.Errorf("%s: got %+v", tt.script, e)
			}
			if e.Uptime <= 0 || e.End.Before(e.Start) {
				t.Errorf("%s: got uptime %v from %v to %v", tt.script, e.Uptime, e.Start, e.End)
			}
		}
	})
}

func TestProc_Exit_SaysCoreDumped(t *testing.T) {
	pattern, _ := os.ReadFile("/proc/sys/kernel/core_pattern")
	if s := string(pattern); s == "" || s[0] == '/' || s[0] == '|' {
		t.Skipf("core pattern %q does not write to the working directory", s)
	}
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{Argv: sh("ulimit -c unlimited || exit 1; kill -ABRT $$"), Dir: t.TempDir()})
		if e := ended(t, p); e.Code == 1 {
			t.Skip("cores are not allowed")
		} else if !e.CoreDumped || e.Signal != syscall.SIGABRT {
			t.Errorf("got %v", e)
		}
	})
}

func TestProc_Stop_RequestedExitIsNoFailure(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, lines := child(t, level, Spec{Argv: helperArgv("on-term")})
		within(t, patience, "first line", lines)
		e, err := p.Stop(t.Context(), "enough")
		if err != nil || e.Code != 0 || e.Cause != CauseStopped || !e.Requested || e.Escalated || e.Reason != "enough" {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

func TestProc_Stop_EscalatesWhenTermIsIgnored(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, lines := child(t, level, Spec{Argv: helperArgv("ignore-term"), Grace: 50 * time.Millisecond})
		within(t, patience, "first line", lines)
		e, err := p.Stop(t.Context(), "")
		if err != nil || !e.Escalated || !e.Requested || e.Signal != syscall.SIGKILL {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

func TestProc_Stop_WakesAStoppedChild(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, lines := child(t, level, Spec{Argv: helperArgv("on-term")})
		within(t, patience, "first line", lines)
		_ = syscall.Kill(p.PID(), syscall.SIGSTOP)
		if e, err := p.Stop(t.Context(), ""); err != nil || e.Escalated || e.Code != 0 {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

func TestProc_Stop_ShorterDeadlineWins(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, lines := child(t, level, Spec{Argv: helperArgv("ignore-term"), Grace: time.Hour})
		within(t, patience, "first line", lines)
		first := make(chan Exit, 1)
		go func() {
			e, _ := p.Stop(context.Background(), "patient")
			first <- e
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		e, err := p.Stop(ctx, "impatient")
		if err != nil || !e.Escalated {
			t.Errorf("got %+v, %v", e, err)
		}
		if got := within(t, patience, "the first Stop", first); !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v and %+v", got, e)
		}
	})
}

func TestProc_Exit_OneForAllWaiters(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{Argv: sh("exit 5"), Grace: time.Second})
		exits := waiters(64, func() Exit {
			e, _ := p.Stop(context.Background(), "race")
			return e
		})
		want, ok := p.Exit()
		if !ok {
			t.Fatal("no Exit after Stop")
		}
		for _, e := range exits {
			if !reflect.DeepEqual(e, want) {
				t.Fatalf("got %+v want %+v", e, want)
			}
		}
		if want.Requested != (want.Cause == CauseStopped) || want.Code != 5 && !want.Requested {
			t.Errorf("got %+v", want)
		}
	})
}

func TestProc_Stop_AfterTheEndChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{Argv: sh("exit 5")})
		before := ended(t, p)
		after, err := p.Stop(t.Context(), "late")
		if err != nil || !reflect.DeepEqual(before, after) || after.Requested || after.Reason != "" {
			t.Errorf("got %+v, %v want %+v", after, err, before)
		}
	})
}

// A child that has crashed, unknown to us, is not made a requested exit by a Stop that comes late.
func TestProc_Stop_DoesNotClaimACrash(t *testing.T) {
	b := newFake()
	p := fakeProc(b)
	b.isDead.Store(true)
	if p.end(CauseStopped, "late") {
		t.Error("Stop was first")
	}
	go p.run()
	close(b.died)
	if e := ended(t, p); e.Cause != CauseSelf || e.Requested || e.Reason != "" {
		t.Errorf("got %+v", e)
	}
}

func TestProc_Stop_SaysUnkillable(t *testing.T) {
	b := newFake()
	p := fakeProc(b)
	go p.run()
	_, err := p.Stop(context.Background(), "")
	if !errors.Is(err, ErrUnkillable) || !strings.Contains(err.Error(), "state") {
		t.Errorf("got %v", err)
	}
	if got := b.sent(); !reflect.DeepEqual(got, []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT, syscall.SIGKILL}) {
		t.Errorf("got signals %v", got)
	}
	close(b.died)
	if e := ended(t, p); !e.Escalated || !e.Requested {
		t.Errorf("got %+v", e)
	}
}

func TestErrors_ZeroValuesSpeak(t *testing.T) {
	for _, err := range []error{&StartError{}, &ExitError{}, &ReadyError{}} {
		if err.Error() == "" {
			t.Errorf("%T says nothing", err)
		}
	}
	if got := (Exit{Code: -1, Signal: syscall.SIGKILL, Signaled: true}).String(); !strings.Contains(got, "signal 9 (killed)") {
		t.Errorf("got %q", got)
	}
}

func TestProc_Exit_SaysWhatWasUsed(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{Argv: sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")})
		u := ended(t, p).Usage
		if u.User+u.System <= 0 || u.User > time.Hour || u.MaxRSS < 100<<10 || u.MaxRSS > 1<<40 {
			t.Errorf("got %+v", u)
		}
	})
}

// Times keep the monotonic clock's reading, so that a jump of the other one does not reach Uptime.
func TestProc_Exit_TimesAreMonotonic(t *testing.T) {
	p, _ := child(t, Group, Spec{Argv: sh("exit")})
	e := ended(t, p)
	for _, at := range []time.Time{e.Start, e.End} {
		if !strings.Contains(at.String(), " m=") {
			t.Errorf("%v has no reading of the monotonic clock", at)
		}
	}
}
