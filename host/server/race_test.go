package server

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/zmqio"
)

// Scenario 5: a server that exits right after it wrote a complete reply never costs the reply.
func TestServer_ReplyWins(t *testing.T) {
	n := 300
	if long() {
		n = 10_000
	} else if testing.Short() {
		n = 30
	}
	hows := []string{"0", "23", "kill"}
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range next {
				replyThenExit(t, transports()[i%2], hows[i%3])
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

func replyThenExit(t *testing.T, transport, how string) {
	sp := spec(t, transport, script{})
	sp.LogPath, sp.Containment = "", "group"
	s, err := Start(context.Background(), sp)
	if err != nil {
		t.Error(err)
		return
	}
	r, err := s.Run(context.Background(), order(task{Do: "cut", Name: "whole", How: how}), nil)
	if err != nil || r.Episode == nil || r.Episode.ID != "whole" {
		t.Errorf("%s %s: got %+v, %v: the reply lost", transport, how, r.Episode, err)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	var x *ExitedError
	if !errors.As(s.Err(), &x) || x.InFlight != 0 {
		t.Errorf("got %v, want an exit with none in flight", s.Err())
	}
}

// Scenario 10, in-process and often: the end of the connection, a reply, a cancel and a deadline meet.
func TestServer_Run_EverythingAtOnce(t *testing.T) {
	const calls = 8
	n := 300
	if long() {
		n = 100_000 / calls
	} else if testing.Short() {
		n = 50
	}
	why := errors.New("cancelled")
	var replies, cancels, losses int
	for i := range n {
		v := &scripted{}
		v.cond = sync.NewCond(&v.mu)
		peer, err := zmqio.Listen(hosttest.Socket(t), v.handle, zmqio.ServerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Start(t.Context(), Spec{Address: peer.Endpoint(), CancelGrace: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		dead, stop := context.WithDeadline(context.Background(), time.Now().Add(time.Duration(i%7)*time.Millisecond/2))
		ends := make(chan ending, calls)
		gate := make(chan struct{})
		for c := range calls {
			go func() {
				<-gate
				use := ctx
				if c%2 == 1 {
					use = dead
				}
				do := task{Do: "reply", Name: "x"}
				if c%4 > 1 {
					do = task{Do: "hold"}
				}
				r, err := s.Run(use, order(do), nil)
				ends <- ending{r, err}
			}()
		}
		// Who is early differs from round to round, by how many messages have passed the wire.
		after := func(messages int) {
			for range 5000 {
				if st := s.client.Stats(); st.Sent+st.Received > int64(messages)+2 { // 2: health
					return
				}
				runtime.Gosched()
			}
		}
		go func() { <-gate; after(i % (2 * calls)); cancel(why) }()
		go func() { <-gate; after(i / 3 % (2 * calls)); _ = peer.Close() }()
		close(gate)
		for range calls {
			e := hosttest.Await(t, "an end", ends)
			var lost *ConnLostError
			switch {
			case e.err == nil:
				whole(t, e.reply, "x")
				replies++
			case errors.Is(e.err, why), errors.Is(e.err, context.DeadlineExceeded):
				cancels++
			case errors.As(e.err, &lost):
				if e.err != s.Err() {
					t.Fatalf("got %v, want the same value", e.err)
				}
				losses++
			case text(t, e) == "CancelledError: ": // the peer's own cancel was answered first
				cancels++
			default:
				t.Fatalf("got %v", e.err)
			}
		}
		stop()
		hosttest.Await(t, "Exited", s.Exited())
		_ = s.Stop(context.Background())
		_ = peer.Close()
	}
	if replies+cancels+losses != n*calls || !testing.Short() && (replies == 0 || cancels == 0 || losses == 0) {
		t.Errorf("of %d calls some had no end, or one kind of end never came", n*calls)
	}
	t.Logf("%d replies, %d cancels, %d losses", replies, cancels, losses)
}

// Scenario 10 with a process: it is killed in the instant in which all calls are cancelled.
func TestServer_Run_KilledAndCancelled(t *testing.T) {
	n := 10
	if long() {
		n = 200
	}
	why := errors.New("cancelled")
	for i := range n {
		sp := spec(t, transports()[i%2], script{})
		s := start(t, sp)
		ctx, cancel := context.WithCancelCause(context.Background())
		var ends []<-chan ending
		for range 64 {
			ends = append(ends, send(ctx, s, task{Do: "hold"}))
		}
		run(t, s, task{Do: "wait", When: 64})
		gate := make(chan struct{})
		go func() { <-gate; cancel(why) }()
		go func() { <-gate; _ = syscall.Kill(s.PID(), syscall.SIGKILL) }()
		close(gate)
		for _, ch := range ends {
			e := hosttest.Await(t, "an end", ch)
			var x *ExitedError
			if !errors.Is(e.err, why) && (!errors.As(e.err, &x) || x.Signal != syscall.SIGKILL || e.err != s.Err()) {
				t.Fatalf("got %v, want the cause or the exit", e.err)
			}
		}
		hosttest.Await(t, "Exited", s.Exited())
	}
}

// Deaths of all ways, at moments that differ, with some callers that cancel and some that come late: the
// barrier opens each time, and all who met the death have the same error.
func TestServer_Exit_BarrierOpens(t *testing.T) {
	n := 60
	if long() {
		n = 2000
	} else if testing.Short() {
		n = 8
	}
	why := errors.New("cancelled")
	deaths, cancels, replies := 0, 0, 0
	for i := range n {
		sp := spec(t, transports()[i%2], script{})
		sp.LogPath, sp.Containment = "", "group"
		s, err := Start(context.Background(), sp)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		var ends []<-chan ending
		held := 1 + i%32
		for c := range held {
			use := context.Background()
			if c%3 == 2 {
				use = ctx
			}
			ends = append(ends, send(use, s, task{Do: "hold"}))
			if c%5 == 4 {
				ends = append(ends, send(context.Background(), s, task{Do: "reply", Name: "x"}))
			}
		}
		die := task{Do: "die", How: []string{"0", "23", "kill", "segv"}[i/2%4], When: i % 3 * held / 3}
		ends = append(ends, send(context.Background(), s, die))
		if i%4 == 1 {
			cancel(why)
		}
		hosttest.Await(t, "the latch", s.Closing())
		ends = append(ends, send(context.Background(), s, task{Do: "reply", Name: "x"}))
		for _, ch := range ends {
			switch e := hosttest.Await(t, "an end", ch); {
			case e.err == nil:
				whole(t, e.reply, "x")
				replies++
			case errors.Is(e.err, why):
				cancels++
			case errors.As(e.err, new(*ExitedError)):
				if hosttest.Await(t, "Exited", s.Exited()); e.err != s.Err() {
					t.Fatalf("got %v, want the same value", e.err)
				}
				deaths++
			default:
				t.Fatalf("got %v", e.err)
			}
		}
		cancel(nil)
		if err := s.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		if x, ok := errors.AsType[*ExitedError](s.Err()); !ok || !x.Drained {
			t.Fatalf("got %v, want an exit with all callers out", s.Err())
		}
	}
	t.Logf("%d deaths told, %d cancels, %d replies", deaths, cancels, replies)
}
