package zmqio

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// cancellable is a handler of runs that only end with their context, and of cancels.
type cancellable struct {
	started chan string
	ended   chan error
}

func newCancellable() *cancellable {
	return &cancellable{make(chan string, 1000), make(chan error, 1000)}
}

func (h *cancellable) serve(ctx context.Context, req *Request) []byte {
	switch req.Method {
	case "health":
		return []byte("well")
	case "cancel":
		return req.CancelRun(string(req.Payload), func(cancelled bool) []byte {
			if cancelled {
				return []byte("true")
			}
			return []byte("false")
		})
	}
	h.started <- req.ID
	<-ctx.Done()
	h.ended <- context.Cause(ctx)
	return []byte("aborted")
}

// client is a scripted client of a server.
func client(t *testing.T, s *Server) *script {
	t.Helper()
	network, addr, _ := split(s.Endpoint())
	nc, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	p := newScript(nc)
	if err := p.shake("DEALER"); err != nil {
		t.Fatal(err)
	}
	return p
}

func wantAnswer(t *testing.T, p *script, id, kind, payload string) {
	t.Helper()
	if a, b, c := p.hear(t); a != id || b != kind || c != payload {
		t.Fatalf("got %q %q %q, want %q %q %q", a, b, c, id, kind, payload)
	}
}

func TestServer_Cancel_RepliesBeforeTheRun(t *testing.T) {
	h := newCancellable()
	s := listen(t, "ipc://"+socketPath(t), h.serve, ServerOptions{MaxRuns: 1})
	p := client(t, s)
	for range 50 {
		p.say(t, "r1", "run", "")
		await(t, "the start", h.started)
		p.say(t, "r2", "run", "") // behind MaxRuns
		p.say(t, "h", "health", "")
		wantAnswer(t, p, "h", "reply", "well")
		p.say(t, "c0", "cancel", "nobody")
		wantAnswer(t, p, "c0", "reply", "false")
		p.say(t, "c2", "cancel", "r2")
		wantAnswer(t, p, "c2", "reply", "true")
		wantAnswer(t, p, "r2", "reply", "aborted")
		p.say(t, "c1", "cancel", "r1")
		wantAnswer(t, p, "c1", "reply", "true")
		wantAnswer(t, p, "r1", "reply", "aborted")
		p.say(t, "c1", "cancel", "r1")
		wantAnswer(t, p, "c1", "reply", "false")
		for range 2 {
			if err := await(t, "the end", h.ended); !errors.Is(err, ErrCancelled) {
				t.Fatalf("got %v", err)
			}
		}
		await(t, "the other start", h.started)
	}
}

func TestRequest_CancelRun_OfAnAnsweredRun(t *testing.T) {
	p := &peer{server: &Server{}, out: newOutbound(1)}
	done := &Request{ID: "1", Method: "run", peer: p, replied: true}
	p.server.runs = map[string]*Request{"1": done} // the instant between its reply and its end
	cancel := &Request{ID: "2", Method: "cancel", peer: p}
	cancel.CancelRun("1", func(cancelled bool) []byte {
		if cancelled {
			t.Error("cancelled a run that had its reply")
		}
		return nil
	})
}

func TestOutbound_Reserve_Waits(t *testing.T) {
	o := newOutbound(100)
	gone, done := make(chan struct{}), make(chan struct{})
	if err := o.reserve(1000, gone, done); err != nil {
		t.Fatalf("a large one alone: got %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- o.reserve(1, gone, done) }()
	until(t, "the waiting", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.room != nil
	})
	o.release(1000)
	if err := await(t, "the room", waited); err != nil || o.bytes != 1 {
		t.Errorf("got %v, %d bytes", err, o.bytes)
	}
	close(done)
	if err := o.reserve(100, gone, done); !errors.Is(err, ErrCancelled) {
		t.Errorf("cancelled: got %v", err)
	}
	close(gone)
	if err := o.reserve(1, gone, nil); !errors.Is(err, ErrPeerGone) {
		t.Errorf("gone: got %v", err)
	}
}

// Replies to cancels go out without waiting for room; who does not read them is not read any more.
func TestServer_CancelFlood_IsBounded(t *testing.T) {
	part := strings.Repeat("x", 64<<10)
	s := listen(t, "ipc://"+socketPath(t), func(_ context.Context, req *Request) []byte {
		return req.CancelRun("nobody", func(bool) []byte { return req.Payload })
	}, ServerOptions{QueueBytes: 64 << 10})
	p := client(t, s)
	if err := p.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 10_000 {
		if _, err = p.Write(wireMessage("c", "cancel", part)); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || len(s.runs) != 0 {
		t.Errorf("got %v", err)
	}
}

func TestServer_Cancel_OfAnotherConnection(t *testing.T) {
	h := newCancellable()
	s := listen(t, "ipc://"+socketPath(t), h.serve, ServerOptions{})
	p, q := client(t, s), client(t, s)
	p.say(t, "run of p", "run", "")
	await(t, "the start", h.started)
	q.say(t, "c", "cancel", "run of p")
	wantAnswer(t, q, "c", "reply", "true")
	wantAnswer(t, p, "run of p", "reply", "aborted")
}

func TestServer_ClientLeaves_RunsEnd(t *testing.T) {
	h := newCancellable()
	s := listen(t, "ipc://"+socketPath(t), h.serve, ServerOptions{})
	p := client(t, s)
	for _, id := range []string{"1", "2", "3"} {
		p.say(t, id, "run", "")
		await(t, "the start", h.started)
	}
	_ = p.Close()
	for range 3 {
		if err := await(t, "the end", h.ended); !errors.Is(err, ErrPeerGone) {
			t.Errorf("got %v", err)
		}
	}
}

func TestServer_Close_RunsEnd(t *testing.T) {
	h := newCancellable()
	s := listen(t, "ipc://"+socketPath(t), h.serve, ServerOptions{})
	p := client(t, s)
	p.say(t, "1", "run", "")
	await(t, "the start", h.started)
	_ = s.Close()
	if err := await(t, "the end", h.ended); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	_ = s.Close()
}

func TestServer_Delta_OrderAndEnd(t *testing.T) {
	late := make(chan error, 1)
	s := listen(t, "ipc://"+socketPath(t), func(_ context.Context, req *Request) []byte {
		if req.Method == "run" {
			for _, d := range []string{"1", "2", "3"} {
				if err := req.Delta([]byte(d)); err != nil {
					t.Error(err)
				}
			}
			go func() {
				for {
					if err := req.Delta(nil); err != nil {
						late <- err
						return
					}
				}
			}()
		}
		return []byte("end")
	}, ServerOptions{})
	p := client(t, s)
	p.say(t, "1", "run", "")
	for _, d := range []string{"1", "2", "3"} {
		wantAnswer(t, p, "1", "delta", d)
	}
	for {
		if _, kind, payload := p.hear(t); kind == "reply" {
			if payload != "end" {
				t.Errorf("got %q", payload)
			}
			break
		}
	}
	if err := await(t, "the end of deltas", late); !errors.Is(err, ErrReplied) {
		t.Errorf("got %v", err)
	}
	p.say(t, "2", "health", "") // no delta came after the reply
	wantAnswer(t, p, "2", "reply", "end")
}

func TestServer_WrongRequest_ClosesConnection(t *testing.T) {
	h := newCancellable()
	s := listen(t, "ipc://"+socketPath(t), h.serve, ServerOptions{RequestMax: 1000})
	for name, messages := range map[string][][]string{
		"one frame":     {{"x"}},
		"four frames":   {{"", "id", "health", ""}},
		"id not UTF-8":  {{"\xff", "health", ""}},
		"id too long":   {{strings.Repeat("x", 256), "health", ""}},
		"long method":   {{"id", strings.Repeat("x", 65), ""}},
		"too large":     {{"id", "health", strings.Repeat("x", 1001)}},
		"same id twice": {{"id", "run", ""}, {"id", "run", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			p := client(t, s)
			for _, m := range messages {
				_, _ = p.Write(wireMessage(m...))
			}
			if _, _, _, err := p.request(); err == nil {
				t.Error("answered")
			}
		})
	}
}

func TestServer_OtherUser_Refused(t *testing.T) {
	uids := make(chan int, 1)
	s := listen(t, "ipc://"+socketPath(t), echo, ServerOptions{AllowUID: func(uid int) bool {
		uids <- uid
		return false
	}})
	_, addr, _ := split(s.Endpoint())
	nc, err := net.Dial("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	if uid := await(t, "the check", uids); uid != os.Geteuid() {
		t.Errorf("got uid %d", uid)
	}
	if newScript(nc).shake("DEALER") == nil {
		t.Error("served")
	}
}

// The bytes of runs that are not answered are bounded, and given back with the answer.
func TestServer_HeldBytes_CutsOff(t *testing.T) {
	h := newCancellable()
	s := listen(t, "ipc://"+socketPath(t), h.serve, ServerOptions{HeldBytes: 1000})
	half := strings.Repeat("x", 500)
	p := client(t, s)
	for range 20 {
		p.say(t, "1", "run", half)
		p.say(t, "2", "run", half)
		await(t, "a start", h.started)
		await(t, "a start", h.started)
		for _, id := range []string{"1", "2"} {
			p.say(t, "c", "cancel", id)
			wantAnswer(t, p, "c", "reply", "true")
			wantAnswer(t, p, id, "reply", "aborted")
		}
		p.say(t, "h", "health", strings.Repeat("x", 900)) // no run, and answered before the next is read
		wantAnswer(t, p, "h", "reply", "well")
	}
	other := client(t, s)
	p.say(t, "1", "run", half)
	await(t, "a start", h.started)
	_, _ = p.Write(wireMessage("2", "run", half+"x"))
	if _, _, _, err := p.request(); err == nil {
		t.Error("answered")
	}
	for range 41 {
		await(t, "an end", h.ended)
	}
	other.say(t, "3", "run", half+half) // the id of the one that was cut off may still be known
	await(t, "the other's start", h.started)
}

func TestServer_MaxConns_RefusesMore(t *testing.T) {
	s := listen(t, "ipc://"+socketPath(t), echo, ServerOptions{MaxConns: 1})
	p := client(t, s)
	_, addr, _ := split(s.Endpoint())
	nc, err := net.Dial("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	if newScript(nc).shake("DEALER") == nil {
		t.Error("a second one is served")
	}
	_ = p.Close()
	dial(t, s.Endpoint(), Options{})
}

func TestListen_SocketFile(t *testing.T) {
	path := socketPath(t)
	endpoint := "ipc://" + path
	s := listen(t, endpoint, echo, ServerOptions{})
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", st.Mode(), err)
	}
	var inUse *InUseError
	if _, err := Listen(endpoint, echo, ServerOptions{}); !errors.As(err, &inUse) {
		t.Errorf("a living server of ours: got %v", err)
	}
	_ = s.Close()
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}

	addr := &net.UnixAddr{Name: path, Net: "unix"}
	other, err := net.ListenUnix("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(endpoint, echo, ServerOptions{}); !errors.As(err, &inUse) {
		t.Errorf("a living server without a lock: got %v", err)
	}
	other.SetUnlinkOnClose(false)
	_ = other.Close()
	s = listen(t, endpoint, echo, ServerOptions{}) // what a dead one left is replaced
	dial(t, endpoint, Options{})

	_ = os.Remove(path) // somebody replaces ours: theirs stays
	other, err = net.ListenUnix("unix", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("removed another's socket: %v", err)
	}
	_ = other.Close()

	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(endpoint, echo, ServerOptions{}); !errors.As(err, &inUse) {
		t.Errorf("a file that is no socket: got %v", err)
	}
	fresh := filepath.Join(filepath.Dir(path), "new", "s")
	listen(t, "ipc://"+fresh, echo, ServerOptions{})
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(endpoint, echo, ServerOptions{}); err == nil || !strings.Contains(err.Error(), "mode 0700") {
		t.Errorf("a directory for others: got %v", err)
	}
}

func TestEndpoint_Wrong(t *testing.T) {
	for _, e := range []string{
		"", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:", "tcp://:1", "inproc://x", "udp://1.2.3.4:5", "ipc://", "ipc://*",
		"ipc://@abstract", "ipc:///" + strings.Repeat("x", 100), "/tmp/x",
	} {
		if _, err := Dial(t.Context(), e, Options{}); err == nil || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("dial %q: got %v", e, err)
		}
		if _, err := Listen(e, echo, ServerOptions{}); err == nil || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("listen %q: got %v", e, err)
		}
	}
	for e, want := range map[string]string{"tcp://*:7": ":7", "tcp://[::1]:7": "[::1]:7", "ipc://a/b": "a/b"} {
		if _, got, err := split(e); err != nil || got != want {
			t.Errorf("%q: got %q, %v", e, got, err)
		}
	}
}

// full is a listener without file descriptors.
type full struct {
	calls  int
	closed chan struct{}
}

func (l *full) Accept() (net.Conn, error) {
	l.calls++
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
}
func (l *full) Close() error   { close(l.closed); return nil }
func (l *full) Addr() net.Addr { return &net.TCPAddr{} }

func TestServer_NoDescriptors_DoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &full{closed: make(chan struct{})}
		s := &Server{listener: l, opt: ServerOptions{}.withDefaults(0)}
		ctx, stop := context.WithCancelCause(context.Background())
		s.stop = stop
		s.wg.Go(func() { s.accept(ctx) })
		time.Sleep(time.Minute) // of the bubble's clock
		synctest.Wait()
		if l.calls < 10 || l.calls > 80 {
			t.Errorf("accept was called %d times in a minute", l.calls)
		}
		_ = s.Close()
	})
}
