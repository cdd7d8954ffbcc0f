package procwatch

import (
	"context"
	"errors"
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
		p, _ := child(t, level, Spec{
			Argv: helperArgv("on-term"), ReadyTimeout: 100 * time.Millisecond,
			Prober: func(context.Context) error { defer close(returned); <-release; return nil },
		})
		var re *ReadyError
		if err := p.Ready(t.Context()); !errors.As(err, &re) || re.LastProbe != nil {
			t.Errorf("got %v", err)
		}
		if e := ended(t, p); e.Cause != CauseNotReady || e.Requested {
			t.Errorf("got %+v", e)
		}
		close(release)
		within(t, patience, "the prober's return", returned)
		if err := p.Ready(t.Context()); !errors.As(err, &re) {
			t.Errorf("a late success: got %v", err)
		}
	})
}

func TestProc_Ready_NamesTheLastProbe(t *testing.T) {
	refused := errors.New("connection refused")
	p, _ := child(t, Group, Spec{
		Argv: helperArgv("on-term"), ReadyTimeout: 20 * time.Millisecond,
		Prober: func(context.Context) error { return refused },
	})
	if err := p.Ready(t.Context()); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
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
