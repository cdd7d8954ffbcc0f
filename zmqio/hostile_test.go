package zmqio

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// long is a frame's header alone, with a length that is never sent.
func long(flags byte, size uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte{flags | flagLong}, size))
}

// hostile are what peers send to kill, fill or stop the other side. What follows a whole handshake
// has live set.
func hostile() map[string]struct {
	bytes string
	live  bool
} {
	type row = struct {
		bytes string
		live  bool
	}
	hello := string(greeting("NULL"))
	ready := func(body string) string { return hello + string(command("READY", body)) }
	good := func(more string) row { return row{more, true} }
	return map[string]row{
		"http":                     {"HTTP/1.1 400 Bad Request\r\n\r\n", false},
		"ssh":                      {"SSH-2.0-OpenSSH_9.2\r\n", false},
		"zmtp 1":                   {"\x01\x00", false},
		"zmtp 2":                   {"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01\x05\x00\x00", false},
		"bad signature":            {"\xff" + strings.Repeat("\x00", 63), false},
		"mechanism CURVE":          {string(greeting("CURVE")), false},
		"server flag 7":            {func() string { b := greeting("NULL"); b[32] = 7; return string(b) }() + string(command("READY", "")), false},
		"handshake length 2^40":    {hello + long(flagCommand, 1<<40), false},
		"handshake length 2^62":    {hello + long(flagCommand, 1<<62), false},
		"handshake length 2^63":    {hello + long(flagCommand, 1<<63), false},
		"handshake 64 KiB":         {hello + long(flagCommand, 1<<16), false},
		"handshake message":        {hello + "\x00\x01x", false},
		"READY empty":              {ready(""), false},
		"READY cut in its name":    {ready("\x0bSocket"), false},
		"READY cut after the name": {ready("\x0bSocket-Type"), false},
		"READY cut in its value":   {ready("\x0bSocket-Type\x00\x00\x00\x09ROUT"), false},
		"READY value 4 GiB":        {ready("\x0bSocket-Type\xff\xff\xff\xffROUTER"), false},
		"READY empty name":         {ready("\x00\x00\x00\x00\x00"), false},
		"READY CLIENT":             {ready(property("Socket-Type", "CLIENT")), false},
		"READY PUB":                {ready(property("Socket-Type", "PUB")), false},
		"READY lower case":         {ready(property("Socket-Type", "router")), false},
		"ERROR":                    {hello + string(command("ERROR", "\x05leave")), false},
		"command without name":     {hello + "\x04\x00", false},
		"command name too long":    {hello + "\x04\x03\x09RE", false},
		"length 2^40":              good(long(0, 1<<40)),
		"length 2^62":              good(long(0, 1<<62)),
		"length 2^63":              good(long(0, 1<<63)),
		"length 2^64-1":            good(long(0, 1<<64-1)),
		"second frame 2^62":        good("\x01\x01x" + long(0, 1<<62)),
		"endless MORE":             good(strings.Repeat("\x01\x00", 5000)),
		"flags 0xff":               good("\xff\x01x"),
		"reserved flag":            good("\x08\x01x"),
		"command with MORE":        good("\x05\x07\x04PING\x00\x01"),
		"command 2^62":             good(long(flagCommand, 1<<62)),
		"command 600 bytes":        good(string(command("PING", strings.Repeat("x", 600)))),
		"PING without TTL":         good(string(command("PING", ""))),
		"PING cut in its TTL":      good(string(command("PING", "\x00"))),
		"empty command":            good("\x04\x00"),
		"ERROR later":              good(string(command("ERROR", "\x05leave"))),
		"empty message":            good("\x00\x00"),
	}
}

func TestClient_HostileServers(t *testing.T) {
	for name, tc := range hostile() {
		t.Run(name, func(t *testing.T) {
			kind := ""
			if tc.live {
				kind = "ROUTER"
			}
			endpoint := scripted(t, "ipc://"+socketPath(t), kind, func(s *script) {
				_, _ = s.Write([]byte(tc.bytes))
				_, _ = io.Copy(io.Discard, s.br)
			})
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			c, err := Dial(ctx, endpoint, Options{})
			if err == nil {
				defer func() { _ = c.Close() }()
				_, err = c.Call(ctx, "run", []byte("x"), nil)
				asConn(t, err)
			}
			runtime.ReadMemStats(&after)
			if ctx.Err() != nil || !errors.As(err, new(*ProtocolError)) && !errors.As(err, new(*LimitError)) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "runtime error") {
				t.Errorf("zmq4 was let panic: %v", err)
			}
			if tc.live == (c == nil) {
				t.Errorf("got a client: %v", c != nil)
			}
			// two buffers of 64 KiB for each of the two sides
			if got := after.TotalAlloc - before.TotalAlloc; got > 400<<10 {
				t.Errorf("allocated %d bytes", got)
			}
		})
	}
}

// A guard's peer may say everything of [hostile] to a server as well.
func TestServer_HostileClients(t *testing.T) {
	s := listen(t, "tcp://127.0.0.1:0", echo, ServerOptions{Handshake: 100 * time.Millisecond, MaxConns: 400, MaxRuns: 2})
	rows := hostile()
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	rnd := rand.New(rand.NewPCG(3, 4))
	_, addr, _ := split(s.Endpoint())
	for i := range 300 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		row := rows[names[i%len(names)]]
		p := newScript(nc)
		if row.live {
			_ = p.shake("DEALER")
		}
		b := []byte(row.bytes)
		switch i / len(names) {
		case 0: // as it is
		case 1:
			b = b[:rnd.IntN(len(b)+1)]
		case 2:
			b = append(wireMessage("id", "run", "x"), b...)
		default:
			for range 1 + rnd.IntN(4) {
				b[rnd.IntN(len(b))] = byte(rnd.Uint32())
			}
		}
		_, _ = p.Write(b)
		_ = nc.Close()
	}
	c := dial(t, s.Endpoint(), Options{})
	if r, err := c.Call(t.Context(), "run", []byte("alive"), nil); err != nil || string(r.Payload) != "alive" {
		t.Fatalf("got %q, %v", r.Payload, err)
	}
}

func TestServer_SilentAndSlowClients_DelayNobody(t *testing.T) {
	big := []byte(strings.Repeat("x", 1<<20))
	s := listen(t, "tcp://127.0.0.1:0", func(_ context.Context, req *Request) []byte {
		if string(req.Payload) == "flood" {
			for req.Delta(big) == nil {
			}
		}
		return req.Payload
	}, ServerOptions{QueueBytes: 4 << 20})
	_, addr, _ := split(s.Endpoint())
	conn := func() *script {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		return newScript(nc)
	}
	conn() // says nothing
	slow := conn()
	if err := slow.shake("DEALER"); err != nil {
		t.Fatal(err)
	}
	slow.say(t, "id", "run", "flood") // and reads nothing
	c := dial(t, s.Endpoint(), Options{})
	var worst time.Duration
	for range 200 {
		at := time.Now()
		if _, err := c.Call(t.Context(), "run", []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(at))
	}
	t.Logf("worst of 200: %v", worst)
}

func TestServer_SlowClient_StallCloses(t *testing.T) {
	ended := make(chan error, 1)
	s := listen(t, "tcp://127.0.0.1:0", func(ctx context.Context, req *Request) []byte {
		big := []byte(strings.Repeat("x", 1<<20))
		for req.Delta(big) == nil {
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	}, ServerOptions{QueueBytes: 1 << 20, WriteStall: 50 * time.Millisecond})
	_, addr, _ := split(s.Endpoint())
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	p := newScript(nc)
	if err := p.shake("DEALER"); err != nil {
		t.Fatal(err)
	}
	p.say(t, "id", "run", "flood")
	if err := await(t, "the end of the run", ended); !errors.Is(err, ErrPeerGone) {
		t.Errorf("got %v", err)
	}
}
