package zmqio

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// The guard's fixed limits.
const (
	bufSize    = 64 << 10  // one direction's buffer
	chunkMax   = 256 << 10 // one write under one deadline
	partsMax   = 8         // frames of a message; what is right is checked after it was read
	commandMax = 512       // a command after the handshake (PING: 7 bytes + at most 16)
	shakeMax   = 4096      // a frame within the handshake
	skipMax    = 64 << 30  // an answer's frame that is read and thrown away rather than refused
	slack      = 4096      // a message's frames besides its payload
)

// The bits of a ZMTP frame's first byte (https://rfc.zeromq.org/spec/23/, "Framing").
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// limits are what a guard enforces.
type limits struct {
	keep      int64 // the largest frame that is given to zmq4, and, but for slack, the largest message
	frame     int64 // larger frames end the connection; those between are skipped, and counted
	handshake time.Duration
	stall     time.Duration
}

// guard is the net.Conn that zmq4 reads from and writes to. It looks at each frame's header before
// zmq4 allocates for it, answers nothing itself, and hands each PING's context to pongs. One
// goroutine reads, one writes.
type guard struct {
	net.Conn
	lim   limits
	want  string // the peer's socket type
	br    *bufio.Reader
	bw    *bufio.Writer
	pongs chan []byte // contexts to be answered by the goroutine that writes

	greeted bool
	ready   bool   // the handshake is over
	pass    int64  // bytes of the current frame, header included, that zmq4 may still read
	synth   []byte // a made up header, to be read first
	parts   int
	bytes   int64 // of the current message
	skipped int64 // bytes of the current message that were thrown away
	err     error // why reading ended

	writeErr error // the writer's: why writing ended
}

var errWrite = errors.New("write")

func newGuard(nc net.Conn, lim limits, want string) *guard {
	return &guard{
		Conn: nc, lim: lim, want: want, pongs: make(chan []byte, 4),
		br: bufio.NewReaderSize(nc, bufSize),
		bw: bufio.NewWriterSize(stallWriter{nc, lim.stall}, bufSize),
	}
}

// Write buffers; in the handshake it does not. After the handshake zmq4 does not learn what went
// wrong, since it would refuse to read as well; writeError tells.
func (g *guard) Write(p []byte) (int, error) {
	n, err := g.bw.Write(p)
	if !g.ready {
		if err == nil {
			err = g.bw.Flush()
		}
		return n, err
	}
	if err != nil {
		g.writeErr, err = err, errWrite
	}
	return n, err
}

// writeError puts the true error in the place of errWrite.
func (g *guard) writeError(err error) error {
	if errors.Is(err, errWrite) {
		return g.writeErr
	}
	return err
}

// Read gives zmq4 the frames of messages, and in the handshake those of commands.
func (g *guard) Read(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	for g.pass == 0 && len(g.synth) == 0 {
		if err := g.next(); err != nil {
			return 0, g.fail(err)
		}
	}
	if len(g.synth) > 0 {
		n := copy(p, g.synth)
		g.synth = g.synth[n:]
		return n, nil
	}
	n, err := g.br.Read(p[:min(int64(len(p)), g.pass)])
	g.pass -= int64(n)
	if err != nil {
		return n, g.fail(err)
	}
	return n, nil
}

// fail keeps the first error; an end inside a message is told from one between two.
func (g *guard) fail(err error) error {
	if errors.Is(err, io.EOF) && (g.parts > 0 || g.pass > 0 || g.br.Buffered() > 0 || !g.ready) {
		err = io.ErrUnexpectedEOF
	}
	g.err = err
	return err
}

// readError puts the guard's own error in the place of what zmq4 made of it.
func (g *guard) readError(err error) error {
	if g.err != nil {
		err = g.err
	}
	return fmt.Errorf("read: %w", err)
}

// header reads the next frame's first bytes without taking them.
func (g *guard) header() (flags byte, size, length int64, err error) {
	h, err := g.br.Peek(2)
	if err != nil {
		return 0, 0, 0, err
	}
	flags = h[0]
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&(flagMore|flagCommand) == flagMore|flagCommand {
		return 0, 0, 0, protocolf("frame with flags %#02x", flags)
	}
	if flags&flagLong == 0 {
		return flags, int64(h[1]), 2, nil
	}
	if h, err = g.br.Peek(9); err != nil {
		return 0, 0, 0, err
	}
	n := binary.BigEndian.Uint64(h[1:])
	return flags, int64(min(n, 1<<63-1)), 9, nil
}

// next admits one more frame.
func (g *guard) next() error {
	if !g.greeted {
		return g.greeting()
	}
	flags, size, length, err := g.header()
	switch {
	case err != nil:
		return err
	case !g.ready:
		return g.readyCommand(flags, size, length)
	case flags&flagCommand != 0:
		return g.command(size, length)
	case size > g.lim.frame:
		return &LimitError{What: "bytes of a frame", Got: size, Max: g.lim.frame}
	}
	if g.parts++; g.parts > partsMax {
		return &LimitError{What: "frames of a message", Got: int64(g.parts), Max: partsMax}
	}
	if size > g.lim.keep {
		if err := g.skip(size, length); err != nil {
			return err
		}
		g.synth = []byte{flags &^ flagLong, 0}
	} else {
		if g.bytes += size; g.bytes > g.lim.keep+slack {
			return &LimitError{What: "bytes of a message", Got: g.bytes, Max: g.lim.keep + slack}
		}
		g.pass = length + size
	}
	if flags&flagMore == 0 {
		g.parts, g.bytes = 0, 0
	}
	return nil
}

// skip throws a frame away as it arrives; zmq4 gets an empty one in its place.
func (g *guard) skip(size, length int64) error {
	for left := size + length; left > 0; {
		n, err := g.br.Discard(int(min(left, 1<<20)))
		left -= int64(n)
		if err != nil {
			g.pass = left
			return err
		}
	}
	g.skipped += size
	return nil
}

// takeSkipped says how many bytes of the message just read were thrown away.
func (g *guard) takeSkipped() int64 {
	n := g.skipped
	g.skipped = 0
	return n
}

// command eats one; what it asks for is left to the writer.
func (g *guard) command(size, length int64) error {
	if size > commandMax {
		return &LimitError{What: "bytes of a command", Got: size, Max: commandMax}
	}
	b, err := g.br.Peek(int(length + size))
	if err != nil {
		return err
	}
	name, body, err := commandName(b[length:])
	if err != nil {
		return err
	}
	switch name {
	case "PING":
		if len(body) < 2 {
			return protocolf("PING of %d bytes", len(body))
		}
		select {
		case g.pongs <- append([]byte(nil), body[2:]...):
		default: // one that is not written yet shows that we live
		}
	case "ERROR":
		return peerError(body)
	}
	_, err = g.br.Discard(int(length + size))
	return err
}

// commandName splits a command's body.
func commandName(b []byte) (name string, body []byte, err error) {
	if len(b) == 0 || int(b[0]) > len(b)-1 {
		return "", nil, protocolf("malformed command of %d bytes", len(b))
	}
	return string(b[1 : 1+b[0]]), b[1+b[0]:], nil
}

// peerError reads the reason of an ERROR command.
func peerError(body []byte) error {
	if len(body) > 0 && int(body[0]) <= len(body)-1 {
		body = body[1 : 1+body[0]]
	}
	return protocolf("the peer says: %q", body)
}

// stallWriter gives each chunk its own deadline: slow is fine, stopped is not.
type stallWriter struct {
	nc    net.Conn
	stall time.Duration
}

func (w stallWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if err := w.nc.SetWriteDeadline(time.Now().Add(w.stall)); err != nil {
			return n, err
		}
		m, err := w.nc.Write(p[:min(len(p), chunkMax)])
		n += m
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return n, &StallError{After: w.stall}
		}
		if err != nil {
			return n, err
		}
		p = p[m:]
	}
	return n, nil
}
