package zmqio

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is also the helper program: the test binary run as "<test> helper:<mode> <args>".
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if mode, ok := strings.CutPrefix(os.Args[1], "helper:"); ok {
			os.Exit(helper(mode, os.Args[2:]))
		}
	}
	goleak.VerifyTestMain(m)
}

// patience is the deadline of everything that a test waits for.
const patience = 30 * time.Second

// await waits for what must happen, and shows who is stuck when it does not.
func await[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		buf := make([]byte, 1<<20)
		t.Fatalf("%s did not happen\n%s", what, buf[:runtime.Stack(buf, true)])
		panic("unreachable")
	}
}

// until polls a counter that has no channel.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Microsecond) // as the machine allows: to spin would take it from others
	defer tick.Stop()
	for end := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// socketPath is short and private.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zmqio")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// cancelText is the payload of a cancel in these tests: the id itself.
func cancelText(id string) []byte { return []byte(id) }

func dial(t testing.TB, endpoint string, opt Options) *Client {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	c, err := Dial(ctx, endpoint, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func listen(t testing.TB, endpoint string, h Handler, opt ServerOptions) *Server {
	t.Helper()
	s, err := Listen(endpoint, h, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// both runs a test over ipc and tcp.
func both(t *testing.T, f func(t *testing.T, endpoint string)) {
	t.Run("ipc", func(t *testing.T) { f(t, "ipc://"+socketPath(t)) })
	t.Run("tcp", func(t *testing.T) { f(t, "tcp://127.0.0.1:0") })
}

// outcome is what a Call returned.
type outcome struct {
	reply Reply
	err   error
}

func start(ctx context.Context, c *Client, method, payload string, p *Progress) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		r, err := c.Call(ctx, method, []byte(payload), p)
		ch <- outcome{r, err}
	}()
	return ch
}

// frame is a ZMTP frame as tests see it: their own reading and writing, to not test zmq4 with zmq4.
type frame struct {
	flags byte
	body  []byte
}

func (f frame) append(dst []byte) []byte {
	if len(f.body) > 255 {
		dst = append(dst, f.flags|flagLong)
		dst = binary.BigEndian.AppendUint64(dst, uint64(len(f.body)))
	} else {
		dst = append(dst, f.flags, byte(len(f.body)))
	}
	return append(dst, f.body...)
}

func wireMessage(parts ...string) []byte {
	var b []byte
	for i, p := range parts {
		f := frame{body: []byte(p)}
		if i < len(parts)-1 {
			f.flags = flagMore
		}
		b = f.append(b)
	}
	return b
}

func greeting(mechanism string) []byte {
	b := make([]byte, 64)
	b[0], b[9], b[10] = 0xff, 0x7f, 3
	copy(b[12:], mechanism)
	return b
}

func command(name string, body string) []byte {
	return frame{flagCommand, append(append([]byte{byte(len(name))}, name...), body...)}.append(nil)
}

func property(name, value string) string {
	b := append([]byte{byte(len(name))}, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return string(b) + value
}

// script is one connection of a scripted peer.
type script struct {
	net.Conn
	br *bufio.Reader
}

func newScript(nc net.Conn) *script { return &script{nc, bufio.NewReaderSize(nc, 1<<16)} }

func (s *script) frame() (frame, error) {
	var h [9]byte
	if _, err := io.ReadFull(s.br, h[:2]); err != nil {
		return frame{}, err
	}
	size := uint64(h[1])
	if h[0]&flagLong != 0 {
		if _, err := io.ReadFull(s.br, h[2:9]); err != nil {
			return frame{}, err
		}
		size = binary.BigEndian.Uint64(h[1:])
	}
	f := frame{h[0] &^ flagLong, make([]byte, size)}
	_, err := io.ReadFull(s.br, f.body)
	return f, err
}

// shake does the whole handshake.
func (s *script) shake(kind string) error {
	if _, err := s.Write(greeting("NULL")); err != nil {
		return err
	}
	if _, err := io.ReadFull(s.br, make([]byte, 64)); err != nil {
		return err
	}
	if _, err := s.Write(command("READY", property("Socket-Type", kind)+property("Identity", ""))); err != nil {
		return err
	}
	f, err := s.frame()
	if err == nil && f.flags&flagCommand == 0 {
		err = errors.New("no command")
	}
	return err
}

// request reads one message of three frames; commands go to pongs.
func (s *script) request() (id, method, payload string, err error) {
	var parts []string
	for {
		f, err := s.frame()
		if err != nil {
			return "", "", "", err
		}
		if f.flags&flagCommand != 0 {
			continue
		}
		parts = append(parts, string(f.body))
		if f.flags&flagMore == 0 {
			break
		}
	}
	if len(parts) != 3 {
		return "", "", "", fmt.Errorf("request of %d frames", len(parts))
	}
	return parts[0], parts[1], parts[2], nil
}

func (s *script) say(t *testing.T, parts ...string) {
	t.Helper()
	if _, err := s.Write(wireMessage(parts...)); err != nil {
		t.Error(err)
	}
}

func (s *script) hear(t *testing.T) (id, method, payload string) {
	t.Helper()
	id, method, payload, err := s.request()
	if err != nil {
		t.Error(err)
	}
	return id, method, payload
}

// scripted listens and runs play on each connection, after the handshake if kind is not empty.
func scripted(t *testing.T, endpoint, kind string, play func(*script)) string {
	t.Helper()
	network, addr, err := split(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s := newScript(nc)
			if kind == "" || s.shake(kind) == nil {
				play(s)
			}
			_ = nc.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		await(t, "the script's end", done)
	})
	if network == "tcp" {
		return "tcp://" + l.Addr().String()
	}
	return endpoint
}

// echo answers with the payload; a run first streams it once.
func echo(_ context.Context, req *Request) []byte {
	if req.Method == "run" {
		_ = req.Delta(req.Payload)
	}
	return req.Payload
}

func asConn(t *testing.T, err error) *ConnError {
	t.Helper()
	var ce *ConnError
	if !errors.As(err, &ce) {
		t.Fatalf("got %v (%T), want a *ConnError", err, err)
	}
	return ce
}
