package server

import (
	"net"
	"strconv"
	"testing"
)

// A reserved port can be listened on by its number, and comes to nobody by chance, listening or connecting.
func TestReservePort(t *testing.T) {
	const reserved, others = 300, 2000 // of some 28,000 ports
	ours := map[int]bool{}
	for range reserved {
		port, release, err := reservePort()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		if ours[port] {
			t.Fatalf("port %d twice", port)
		}
		ours[port] = true
	}
	port := func(a net.Addr) int { return a.(*net.TCPAddr).Port }
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for range others {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		c, err := net.Dial("tcp", target.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).SetLinger(0) // leaves nothing behind
		_ = c.Close()
		if in, err := target.Accept(); err == nil {
			_ = in.Close()
		}
		if ours[port(l.Addr())] || ours[port(c.LocalAddr())] {
			t.Fatalf("a reserved port went to a listener on %v or a connection from %v", l.Addr(), c.LocalAddr())
		}
	}
	for p := range ours {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err != nil {
			t.Fatalf("a server cannot listen on it: %v", err)
		}
		_ = l.Close()
	}
}
