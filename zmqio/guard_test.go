package zmqio

import (
	"bufio"
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
var fuzzLimits = limits{keep: 300, frame: 600}

// reference reads whole bytes by the rules of the guard: the frames of messages, with skipped ones
// empty, until the end or the first error.
func reference(b []byte) (frames []frame, pings [][]byte, skipped int64, clean bool) {
	parts, total := 0, 0
	for len(b) > 0 {
		flags := b[0]
		if flags > 7 || flags&5 == 5 {
			return frames, pings, skipped, false
		}
		var size uint64
		if flags&flagLong != 0 {
			if len(b) < 9 {
				return frames, pings, skipped, false
			}
			size, b = binary.BigEndian.Uint64(b[1:9]), b[9:]
		} else {
			if len(b) < 2 {
				return frames, pings, skipped, false
			}
			size, b = uint64(b[1]), b[2:]
		}
		whole := size <= uint64(len(b))
		if flags&flagCommand != 0 {
			if size > commandMax || !whole {
				return frames, pings, skipped, false
			}
			c := b[:size]
			b = b[size:]
			if len(c) == 0 || int(c[0]) >= len(c) {
				return frames, pings, skipped, false
			}
			name, body := string(c[1:1+c[0]]), c[1+c[0]:]
			if name == "ERROR" || name == "PING" && len(body) < 2 {
				return frames, pings, skipped, false
			}
			if name == "PING" {
				pings = append(pings, body[2:])
			}
			continue
		}
		parts++
		if size > uint64(fuzzLimits.frame) || parts > partsMax {
			return frames, pings, skipped, false
		}
		if size > uint64(fuzzLimits.keep) {
			if !whole {
				return frames, pings, skipped, false
			}
			skipped += int64(size)
			frames = append(frames, frame{flags &^ flagLong, []byte{}})
		} else {
			if total += int(size); total > int(fuzzLimits.keep)+slack || !whole {
				return frames, pings, skipped, false
			}
			frames = append(frames, frame{flags &^ flagLong, b[:size]})
		}
		b = b[size:]
		if flags&flagMore == 0 {
			parts, total = 0, 0
		}
	}
	return frames, pings, skipped, parts == 0
}

func FuzzGuard_Read(f *testing.F) {
	add := func(cuts string, messages ...[]byte) { f.Add(bytes.Join(messages, nil), []byte(cuts)) }
	add("", wireMessage("id", "delta", "x"), wireMessage("id", "reply", ""))
	add("\x00\x00\x00\x00", command("PING", "\x00\x01context"), wireMessage("id", "x"))
	add("\x01\x08", wireMessage("id", string(make([]byte, 300))), wireMessage("id", string(make([]byte, 301)), "y"))
	add("\x08", wireMessage("id", string(make([]byte, 601))))
	add("", wireMessage("1", "2", "3", "4", "5", "6", "7", "8"), wireMessage("1", "2", "3", "4", "5", "6", "7", "8", "9"))
	add("", wireMessage("id", "reply", "x")[:4])
	for _, row := range hostile() {
		if row.live {
			add("\x03\x05\x07", wireMessage("id", "reply", "x"), []byte(row.bytes))
		}
	}
	f.Fuzz(func(t *testing.T, data, cuts []byte) {
		wantFrames, wantPings, wantSkipped, wantClean := reference(data)
		g := newGuard(&chunks{data: data, cuts: cuts}, fuzzLimits, "")
		g.greeted, g.ready, g.pongs = true, true, make(chan []byte, len(wantPings)+1)
		s := &script{br: bufio.NewReaderSize(struct{ io.Reader }{g}, 16)}
		var skipped int64
		n := 0
		for ; ; n++ {
			got, err := s.frame()
			skipped += g.takeSkipped()
			if err != nil {
				break
			}
			if n >= len(wantFrames) || got.flags != wantFrames[n].flags || !bytes.Equal(got.body, wantFrames[n].body) {
				t.Fatalf("frame %d: got %v, want %v", n, got, wantFrames)
			}
		}
		if n != len(wantFrames) || skipped != wantSkipped || errors.Is(g.err, io.EOF) != wantClean {
			t.Fatalf("got %d frames, %d bytes skipped, %v; want %d, %d, clean %v", n, skipped, g.err, len(wantFrames), wantSkipped, wantClean)
		}
		close(g.pongs)
		for _, want := range wantPings {
			if got, ok := <-g.pongs; !ok || !bytes.Equal(got, want) {
				t.Fatalf("PONG of %q, want %q", got, want)
			}
		}
		if _, err := g.Read(make([]byte, 1)); err == nil {
			t.Fatal("reads on after its error")
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
