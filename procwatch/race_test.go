package procwatch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

type counts struct{ fds, goroutines int }

func resources() counts { return counts{len(openFDs()), runtime.NumGoroutine()} }

// sameResources waits for what has ended to be counted no more: a goroutine that closed the last
// channel still counts until it is scheduled out.
func sameResources(t *testing.T, before counts) {
	t.Helper()
	var now counts
	for range 1000 {
		if now = resources(); now.fds <= before.fds && now.goroutines <= before.goroutines {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("got %+v want %+v", now, before)
}

// iterations is fewer for the levels with a warden, which costs a process more.
func iterations(n int, level Containment) int {
	if level != Group {
		n /= 5
	}
	if testing.Short() {
		n /= 20
	}
	return n
}

// orLong is n, or more in the long mode.
func orLong(n, long int) int {
	if os.Getenv("WEVALR_LONG") == "1" {
		return long
	}
	return n
}

// Stop, the exit and Ready in the same instant: one Exit, one answer of Ready.
func TestProc_Race_StopExitReady(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		var causes sync.Map
		for i := range orLong(iterations(500, level), 10_000) {
			p, err := Start(t.Context(), Spec{
				Argv: sh("exit 9"), Containment: level,
				Prober: func(ctx context.Context) error {
					if i%2 == 0 {
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			readied := make(chan error, 1)
			go func() { readied <- p.Ready(context.Background()) }()
			if i%3 == 0 {
				<-p.Exiting()
			}
			e, err := p.Stop(context.Background(), "race")
			if err != nil {
				t.Fatal(err)
			}
			var ee *ExitError
			if err := within(t, patience, "Ready", readied); err != nil && (!errors.As(err, &ee) || ee.Exit.End != e.End) {
				t.Fatalf("Ready: got %v want %v", err, e)
			}
			if e.Requested != (e.Cause == CauseStopped) || !e.Requested && e.Code != 9 || e.Signaled && e.Signal != syscall.SIGTERM {
				t.Fatalf("got %+v", e)
			}
			causes.Store(e.Cause, true)
		}
		if _, ok := causes.Load(CauseSelf); !ok {
			t.Error("the exit never won")
		}
	})
}

// The ctx of Start ends at any moment of it: there is no child, or a whole one.
func TestProc_Race_StartCancelled(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		before := resources()
		why := errors.New("enough")
		for range iterations(400, level) {
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() { cancel(why) })
			p, err := Start(ctx, Spec{Argv: []string{"sleep", "600"}, Containment: level})
			timer.Stop()
			cancel(why)
			if err != nil {
				if !errors.Is(err, why) {
					t.Fatal(err)
				}
				continue
			}
			if e, err := p.Stop(context.Background(), ""); err != nil || e.Cause != CauseStopped || e.Signal != syscall.SIGTERM {
				t.Fatalf("got %+v, %v", e, err)
			}
		}
		sameResources(t, before)
	})
}

func TestProc_Leak_NothingIsLeft(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		run := func() {
			p, err := Start(t.Context(), Spec{Argv: sh("echo x"), Containment: level, Sink: func(Line) {}})
			if err != nil {
				t.Fatal(err)
			}
			ended(t, p)
		}
		run()
		before := resources()
		for range iterations(500, level) {
			run()
		}
		sameResources(t, before)
	})
}

func TestProc_OneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	each(t, func(t *testing.T, level Containment) {
		p, _ := child(t, level, Spec{Argv: helperArgv("flood", "1000")})
		if e := ended(t, p); e.Code != 0 || len(e.Tail) == 0 {
			t.Errorf("got %+v", e)
		}
	})
}

func TestStart_OutOfDescriptors(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, level Containment) {
		before := resources()
		low := old
		low.Cur = uint64(before.fds + 2)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) }()
		var held []*os.File
		for {
			f, err := os.Open(os.DevNull)
			if err != nil {
				break
			}
			held = append(held, f)
		}
		free := 0
		for {
			// One more descriptor each time: every step of Start is refused once.
			p, err := Start(t.Context(), Spec{Argv: sh("exit"), Containment: level})
			if err == nil {
				ended(t, p)
				break
			}
			var se *StartError
			if !errors.As(err, &se) || !errors.Is(err, syscall.EMFILE) {
				t.Errorf("with %d free: got %v", free, err)
			}
			if free++; free > 20 {
				t.Fatal("it never starts")
			}
			low.Cur++
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
				t.Fatal(err)
			}
		}
		closeAll(held)
		sameResources(t, before)
		if free == 0 {
			t.Error("nothing was refused")
		}
	})
}

// BenchmarkProc_StartToDone reports what a level costs beside the plain group.
func BenchmarkProc_StartToDone(b *testing.B) {
	var base time.Duration
	for _, level := range levels(b) {
		b.Run(string(level), func(b *testing.B) {
			for b.Loop() {
				p, err := Start(b.Context(), Spec{Argv: []string{"/bin/sh", "-c", "exit"}, Containment: level})
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
			}
			each := b.Elapsed() / time.Duration(b.N)
			if level == Group {
				base = each
			} else if base > 0 {
				b.ReportMetric(float64(each)/float64(base), "x/group")
			}
		})
	}
}
