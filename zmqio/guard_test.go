package zmqio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// chunks is a connection that gives its bytes in pieces of the lengths that cuts says.
type chunks struct {
	net.Conn
	data, cuts []byte
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := len(c.data)
	if len(c.cuts) > 0 {
		n = int(c.cuts[0]) + 1
		c.cuts = c.cuts[1:]
	}
	n = copy(p, c.data[:min(n, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}

// fuzzLimits are small, so that the fuzzer meets them.
var fuzzLimits = limits{keep: 1000, frame: 2000}

// received is what the guard makes of a message, its skipped frames empty.
type received struct {
	frames  []string
	skipped int64
}

// reference reads whole bytes by the rules of the guard, until the end or the first error.
func reference(b []byte) (messages []received, pings [][]byte, clean bool) {
	var m received
	total := 0
	for len(b) > 0 {
		flags := b[0]
		if flags > 7 || flags&5 == 5 {
			return messages, pings, false
		}
		var size uint64
		if flags&flagLong != 0 {
			if len(b) < 9 {
				return messages, pings, false
			}
			size, b = binary.BigEndian.Uint64(b[1:9]), b[9:]
		} else {
			if len(b) < 2 {
				return messages, pings, false
			}
			size, b = uint64(b[1]), b[2:]
		}
		whole := size <= uint64(len(b))
		if flags&flagCommand != 0 {
			if size > commandMax || !whole {
				return messages, pings, false
			}
			c := b[:size]
			b = b[size:]
			if len(c) == 0 || int(c[0]) >= len(c) {
				return messages, pings, false
			}
			name, body := string(c[1:1+c[0]]), c[1+c[0]:]
			if name == "ERROR" || name == "PING" && len(body) < 2 {
				return messages, pings, false
			}
			if name == "PING" {
				pings = append(pings, body[2:])
			}
			continue
		}
		if size > uint64(fuzzLimits.frame) || len(m.frames) == partsMax || !whole {
			return messages, pings, false
		}
		if size > uint64(fuzzLimits.keep) {
			m.skipped += int64(size)
			m.frames = append(m.frames, "")
		} else {
			if total += int(size); total > int(fuzzLimits.keep)+slack {
				return messages, pings, false
			}
			m.frames = append(m.frames, string(b[:size]))
		}
		b = b[size:]
		if flags&flagMore == 0 {
			messages = append(messages, m)
			m, total = received{}, 0
		}
	}
	return messages, pings, len(m.frames) == 0
}

func FuzzGuard_Read(f *testing.F) {
	add := func(cuts string, messages ...[]byte) { f.Add(bytes.Join(messages, nil), []byte(cuts)) }
	add("", wireMessage("id", "delta", "x"), wireMessage("id", "reply", ""))
	add("\x00\x00\x00\x00", command("PING", "\x00\x01context"), wireMessage("id", "x"))
	add("\x01\x08", wireMessage("id", string(make([]byte, 1000))), wireMessage("id", string(make([]byte, 1001)), "y"))
	add("\x08", wireMessage("id", string(make([]byte, 2001))))
	add("", wireMessage("1", "2", "3", "4", "5", "6", "7", "8"), wireMessage("1", "2", "3", "4", "5", "6", "7", "8", "9"))
	add("", wireMessage("id", "reply", "x")[:4])
	add("", wireMessage("id", string(make([]byte, headMax)), string(make([]byte, headMax+1)), "x"), wireMessage("id", "x"))
	for _, row := range hostile() {
		if row.live {
			add("\x03\x05\x07", wireMessage("id", "reply", "x"), []byte(row.bytes))
		}
	}
	f.Fuzz(func(t *testing.T, data, cuts []byte) {
		want, wantPings, wantClean := reference(data)
		g := newGuard(&chunks{data: data, cuts: cuts}, fuzzLimits, "")
		g.pongs = make(chan []byte, len(wantPings)+1)
		for n := 0; ; n++ {
			frames, skipped, err := g.recv()
			if err != nil {
				if n != len(want) || errors.Is(err, io.EOF) != wantClean {
					t.Fatalf("got %d messages, %v; want %d, clean %v", n, err, len(want), wantClean)
				}
				break
			}
			if n >= len(want) || skipped != want[n].skipped || len(frames) != len(want[n].frames) {
				t.Fatalf("message %d: got %q, %d bytes skipped, want %v", n, frames, skipped, want)
			}
			for i, body := range frames {
				if string(body) != want[n].frames[i] {
					t.Fatalf("message %d, frame %d: got %q, want %q", n, i, body, want[n].frames[i])
				}
			}
		}
		close(g.pongs)
		for _, want := range wantPings {
			if got, ok := <-g.pongs; !ok || !bytes.Equal(got, want) {
				t.Fatalf("PONG of %q, want %q", got, want)
			}
		}
	})
}

// The handshake never gives zmq4 what makes it panic, and never hangs on whole bytes.
func FuzzGuard_Handshake(f *testing.F) {
	for _, row := range hostile() {
		if !row.live {
			f.Add([]byte(row.bytes))
		}
	}
	f.Add(append(greeting("NULL"), command("READY", property("Socket-Type", "ROUTER")+property("Identity", "x"))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			go func() { _, _ = io.Copy(io.Discard, b) }()
			_, _ = b.Write(data)
			_ = b.Close()
		}()
		_, g, err := open(a, false, Options{}.withDefaults().limits())
		if (err == nil) != (g != nil) {
			t.Fatalf("got %v, %v", g, err)
		}
		if err != nil && (strings.Contains(err.Error(), "runtime error") || strings.Contains(err.Error(), "unknown")) {
			t.Fatalf("zmq4 panicked: %v", err)
		}
		_ = a.Close()
		<-done
	})
}
