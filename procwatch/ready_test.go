package procwatch

import (
	"context"
	"errors"
	"regexp"
	"sync/atomic"
	"testing"
	"time"
)

func TestProc_Ready_ExitEndsTheWait(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{
			Argv: sh("echo no port >&2; exit 3"), ReadyTimeout: time.Hour,
			Prober: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		})
		var ee *ExitError
		err := p.Ready(t.Context())
		if !errors.As(err, &ee) || ee.Exit.Code != 3 || text(ee.Exit.Tail) != "no port\n" {
			t.Errorf("got %v", err)
		}
	})
}

func TestProc_Ready_FirstSuccessIsKept(t *testing.T) {
	calls := 0
	p, lines := child(t, Group, Spec{Argv: helperArgv("on-term"), Prober: func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	}})
	within(t, patience, "first line", lines)
	if err := p.Ready(t.Context()); err != nil || calls != 3 {
		t.Errorf("got %v after %d calls", err, calls)
	}
	if _, err := p.Stop(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if err := p.Ready(t.Context()); err != nil {
		t.Errorf("after the end: got %v", err)
	}
}

func TestProc_Ready_CrashRightAfter(t *testing.T) {
	gate := make(chan struct{})
	p, _ := child(t, Group, Spec{
		Argv:   sh("kill -SEGV $$"),
		Prober: func(context.Context) error { <-gate; return nil },
	})
	within(t, patience, "Exiting", p.Exiting())
	close(gate)
	err := p.Ready(t.Context())
	e := ended(t, p)
	var ee *ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Errorf("got %v", err)
	}
	if !e.Signaled || e.Requested {
		t.Errorf("got %+v", e)
	}
}

func TestProc_Ready_TimeoutWithHangingProber(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		release, returned := make(chan struct{}), make(chan struct{})
		var called atomic.Bool
		p, _ := child(t, level, Spec{
			Argv: helperArgv("on-term"), ReadyTimeout: 300 * time.Millisecond,
			Prober: func(context.Context) error { defer close(returned); called.Store(true); <-release; return nil },
		})
		var re *ReadyError
		if err := p.Ready(t.Context()); !errors.As(err, &re) || re.LastProbe != nil {
			t.Errorf("got %v", err)
		}
		if e := ended(t, p); e.Cause != CauseNotReady || e.Requested {
			t.Errorf("got %+v", e)
		}
		close(release)
		if called.Load() { // a start may take longer than the timeout
			within(t, patience, "the prober's return", returned)
		}
		if err := p.Ready(t.Context()); !errors.As(err, &re) {
			t.Errorf("a late success: got %v", err)
		}
	})
}

func TestProc_Ready_NamesTheLastProbe(t *testing.T) {
	refused := errors.New("connection refused")
	for limit := 20 * time.Millisecond; ; limit *= 2 { // a start may take longer than the timeout: no probe returns then
		p, _ := child(t, Group, Spec{
			Argv: helperArgv("on-term"), ReadyTimeout: limit,
			Prober: func(context.Context) error { return refused },
		})
		var re *ReadyError
		err := p.Ready(t.Context())
		if errors.As(err, &re) && errors.Is(err, refused) {
			return
		}
		if re == nil || re.LastProbe != nil || limit > patience {
			t.Fatalf("got %v", err)
		}
	}
}

func TestProc_Ready_CtxLeavesTheChildAlone(t *testing.T) {
	p, lines := child(t, Group, Spec{
		Argv:   helperArgv("on-term"),
		Prober: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	})
	within(t, patience, "first line", lines)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := p.Ready(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if _, ok := p.Exit(); ok {
		t.Error("the child has ended")
	}
}

func TestProc_Stop_DuringReadiness(t *testing.T) {
	p, lines := child(t, Group, Spec{
		Argv:   helperArgv("on-term"),
		Prober: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	})
	within(t, patience, "first line", lines)
	readied := make(chan error, 1)
	go func() { readied <- p.Ready(context.Background()) }()
	want, _ := p.Stop(t.Context(), "")
	var ee *ExitError
	if err := within(t, patience, "Ready", readied); !errors.As(err, &ee) || ee.Exit.Cause != CauseStopped || ee.Exit.End != want.End {
		t.Errorf("got %v", err)
	}
}

func TestProc_Ready_LogLineSplitAcrossWrites(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{
			Argv: helperArgv("pieces", "listen", "ing on po", "rt 80", "\n"), ReadyTimeout: patience,
			ReadyLine: regexp.MustCompile(`^listening on port \d+$`),
		})
		if err := p.Ready(t.Context()); err != nil || text(p.Tail()) != "listening on port 80\n" {
			t.Errorf("got %v, %q", err, text(p.Tail()))
		}
	})
}

func TestProc_Ready_LogLineOnStderr(t *testing.T) {
	p, _ := child(t, Group, Spec{
		Argv: sh("echo almost ready; echo ready >&2; exec sleep 600"), ReadyTimeout: patience,
		ReadyLine: regexp.MustCompile(`^ready`),
	})
	if err := p.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestProc_Ready_LogLineNeverCame(t *testing.T) {
	p, _ := child(t, Group, Spec{
		Argv: sh("echo not that; exec sleep 600"), ReadyTimeout: 100 * time.Millisecond,
		ReadyLine: regexp.MustCompile(`^ready`),
	})
	var re *ReadyError
	if err := p.Ready(t.Context()); !errors.As(err, &re) || re.Timeout != 100*time.Millisecond {
		t.Errorf("got %v", err)
	}
}

func TestProc_Ready_Notified(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		for fd, script := range map[int]string{
			3: "echo >&3; echo more >&3 || exit 1; exec sleep 600",
			9: "[ ! -e /dev/fd/3 ] && [ ! -e /dev/fd/4 ] || exit 2; echo >&9; exec 9>&-; exec sleep 600",
		} {
			p, _ := child(t, level, Spec{Argv: sh(script), NotifyFD: fd, ReadyTimeout: patience})
			if err := p.Ready(t.Context()); err != nil {
				t.Errorf("descriptor %d: %v", fd, err)
			}
		}
	})
}

func TestProc_Ready_NotifyClosedWithoutAByte(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{Argv: sh("exec 3>&-; exec sleep 600"), NotifyFD: 3, ReadyTimeout: time.Hour})
		var re *ReadyError
		if err := p.Ready(t.Context()); !errors.As(err, &re) || !errors.Is(err, errNotNotified) {
			t.Errorf("got %v", err)
		}
		if e := ended(t, p); e.Cause != CauseNotReady || e.Requested {
			t.Errorf("got %+v", e)
		}
	})
}

// The end of the child closes the descriptor too, and it is the end that is told.
func TestProc_Ready_NotifyClosedByTheEnd(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{Argv: sh("exit 6"), NotifyFD: 3, ReadyTimeout: time.Hour})
		var ee *ExitError
		if err := p.Ready(t.Context()); !errors.As(err, &ee) || ee.Exit.Code != 6 || ee.Exit.Cause != CauseSelf {
			t.Errorf("got %v", err)
		}
	})
}

// The first of several counts, and one that says it never will does not end the wait for the others.
func TestProc_Ready_FirstOfSeveral(t *testing.T) {
	closed := make(chan struct{})
	p, _ := child(t, Group, Spec{
		Argv: sh("exec 3>&-; exec sleep 600"), NotifyFD: 3, ReadyTimeout: time.Hour,
		ReadyLine: regexp.MustCompile("never"),
		Prober: func(ctx context.Context) error {
			select {
			case <-closed:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})
	late := time.AfterFunc(notifySettle+200*time.Millisecond, func() { close(closed) })
	defer late.Stop()
	if err := p.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
