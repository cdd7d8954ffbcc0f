package envserver

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/internal/hosttest"
)

// raw is a client that shows every frame: ZMTP 3.0, as little of it as the tests need.
type raw struct {
	t *testing.T
	c net.Conn
}

func newRaw(t *testing.T, endpoint string) *raw {
	t.Helper()
	var d net.Dialer
	ctx, cancel := context.WithTimeout(t.Context(), hosttest.Patience)
	defer cancel()
	c, err := d.DialContext(ctx, "unix", strings.TrimPrefix(endpoint, "ipc://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	r := &raw{t: t, c: c}
	if err := c.SetDeadline(time.Now().Add(hosttest.Patience)); err != nil {
		t.Fatal(err)
	}
	greeting := make([]byte, 64)
	copy(greeting, "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL")
	r.write(greeting)
	r.read(64)
	r.write([]byte("\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"))
	r.frame()
	return r
}

func (r *raw) write(b []byte) {
	r.t.Helper()
	if _, err := r.c.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) read(n int) []byte {
	r.t.Helper()
	b := make([]byte, n)
	for got := 0; got < n; {
		k, err := r.c.Read(b[got:])
		if err != nil {
			r.t.Fatalf("read: %v", err)
		}
		got += k
	}
	return b
}

// frame reads one frame, long or short.
func (r *raw) frame() []byte {
	r.t.Helper()
	flags := r.read(1)[0]
	n := 0
	size := 1
	if flags&2 != 0 {
		size = 8
	}
	for _, b := range r.read(size) {
		n = n<<8 | int(b)
	}
	return r.read(n)
}

func (r *raw) send(id, method string, payload []byte) {
	r.t.Helper()
	for i, f := range [][]byte{[]byte(id), []byte(method), payload} {
		flags, n := byte(1), len(f)
		if i == 2 {
			flags = 0
		}
		head := []byte{flags, byte(n)}
		if n > 255 {
			head = []byte{flags | 2, 0, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		}
		r.write(append(head, f...))
	}
}

func (r *raw) recv() (id, kind string, payload []byte) {
	r.t.Helper()
	id, kind = string(r.frame()), string(r.frame())
	return id, kind, r.frame()
}
