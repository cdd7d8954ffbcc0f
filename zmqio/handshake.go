package zmqio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// open does the ZMTP handshake in the caller's goroutine, under a deadline. On an error nc is
// closed. A *ProtocolError is the peer's nature; other errors are the connection's.
func open(nc net.Conn, server bool, lim limits) (zc *zmq4.Conn, g *guard, err error) {
	self, want := zmq4.Dealer, string(zmq4.Router)
	if server {
		self, want = zmq4.Router, string(zmq4.Dealer)
	}
	g = newGuard(nc, lim, want)
	defer func() {
		if r := recover(); r != nil { // the guard has checked what is known to make zmq4 panic
			err = protocolf("handshake: %v", r)
		}
		if err != nil {
			_ = nc.Close()
			zc, g = nil, nil
		}
	}()
	if err := nc.SetDeadline(time.Now().Add(lim.handshake)); err != nil {
		return nil, nil, fmt.Errorf("handshake: %w", err)
	}
	zc, err = zmq4.Open(g, null.Security(), self, nil, server, nil)
	if err != nil {
		return nil, nil, shakeError(g, err)
	}
	g.ready = true
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return nil, nil, fmt.Errorf("handshake: %w", err)
	}
	return zc, g, nil
}

// shakeError tells a peer that speaks something else from a connection that broke.
func shakeError(g *guard, err error) error {
	if g.err != nil {
		err = g.err
	}
	var ours *ProtocolError
	var limit *LimitError
	var netErr net.Error
	var errno syscall.Errno
	switch {
	case errors.As(err, &ours):
		return err
	case errors.As(err, &limit):
		return protocolf("handshake: %v", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.As(err, &netErr), errors.As(err, &errno), errors.As(err, new(*StallError)):
		return fmt.Errorf("handshake: %w", err)
	}
	return protocolf("handshake: %v", err)
}

// Read gives zmq4 the peer's side of the handshake.
func (g *guard) Read(p []byte) (n int, err error) {
	if g.pass == 0 && g.err == nil {
		g.err = cut(g.next())
	}
	if g.err != nil {
		return 0, g.err
	}
	n, err = g.br.Read(p[:min(int64(len(p)), g.pass)])
	g.pass -= int64(n)
	g.err = cut(err)
	return n, g.err
}

// next admits the greeting, then a command.
func (g *guard) next() error {
	if !g.greeted {
		return g.greeting()
	}
	flags, size, length, err := g.header()
	if err != nil {
		return err
	}
	return g.readyCommand(flags, size, length)
}

// greeting admits the peer's 64 bytes, and refuses at the first byte that is wrong: a peer that
// speaks something else may never send 64.
func (g *guard) greeting() error {
	const length, mechanism = 64, 20
	b, err := g.br.Peek(1)
	if err == nil && b[0] != 0xff {
		b, _ = g.br.Peek(min(g.br.Buffered(), 16))
		return protocolf("handshake: the peer does not speak ZMTP: %q", b)
	}
	if err == nil {
		b, err = g.br.Peek(10)
	}
	if err == nil && b[9] != 0x7f {
		return protocolf("handshake: ZMTP signature % x", b)
	}
	if err == nil {
		b, err = g.br.Peek(11)
	}
	if err == nil && b[10] < 3 {
		return protocolf("handshake: ZMTP version %d, want 3", b[10])
	}
	if err == nil {
		b, err = g.br.Peek(length)
	}
	if err != nil {
		return err
	}
	if m := string(bytes.TrimRight(b[12:12+mechanism], "\x00")); m != "NULL" {
		return protocolf("handshake: security mechanism %q, want NULL", m)
	}
	g.greeted, g.pass = true, length
	return nil
}

// readyCommand admits the peer's READY if its properties are whole and its socket type fits.
func (g *guard) readyCommand(flags byte, size, length int64) error {
	if flags&flagCommand == 0 {
		return protocolf("handshake: a message before READY")
	}
	if size > shakeMax {
		return &LimitError{What: "bytes of a handshake frame", Got: size, Max: shakeMax}
	}
	b, err := g.br.Peek(int(length + size))
	if err != nil {
		return err
	}
	name, body, err := commandName(b[length:])
	switch {
	case err != nil:
		return err
	case name == "ERROR":
		return peerError(body)
	case name != "READY":
		return protocolf("handshake: command %q, want READY", name)
	}
	kind, err := socketType(body)
	if err != nil {
		return err
	}
	if kind != g.want {
		return protocolf("handshake: the peer is a %q socket, want %s", kind, g.want)
	}
	g.pass = length + size
	return nil
}

// socketType walks READY's properties: length and name, length (4 bytes) and value.
func socketType(b []byte) (kind string, err error) {
	malformed := protocolf("handshake: malformed READY of %d bytes", len(b))
	for len(b) > 0 {
		n := int(b[0])
		if n == 0 || len(b) < 1+n+4 {
			return "", malformed
		}
		name := string(b[1 : 1+n])
		size := int64(binary.BigEndian.Uint32(b[1+n:]))
		if b = b[1+n+4:]; int64(len(b)) < size {
			return "", malformed
		}
		if strings.EqualFold(name, "Socket-Type") {
			kind = string(b[:size])
		}
		b = b[size:]
	}
	return kind, nil
}
