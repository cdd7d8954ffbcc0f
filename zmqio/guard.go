package zmqio

import (
	"bufio"
	"encoding/binary"
	"errors"
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
	headMax    = 512       // a frame before the last that needs no memory of its own
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
	keep      int64 // the largest frame that is kept, and, but for slack, the largest message
	frame     int64 // larger frames end the connection; those between are skipped, and counted
	handshake time.Duration
	stall     time.Duration
}

// guard is the net.Conn that zmq4 shakes hands and writes on; messages are read from it by recv. It
// looks at each frame's header before anything is allocated for it, answers nothing itself, and
// hands each PING's context to pongs. One goroutine reads, one writes.
type guard struct {
	net.Conn
	lim   limits
	want  string // the peer's socket type
	br    *bufio.Reader
	bw    *bufio.Writer
	pongs chan []byte // contexts to be answered by the goroutine that writes

	greeted bool
	ready   bool  // the handshake is over
	pass    int64 // bytes that zmq4 may still read of it
	err     error // why it broke

	frames [][]byte // of the message read last
	heads  []byte   // the small ones of them
}

func newGuard(nc net.Conn, lim limits, want string) *guard {
	return &guard{
		Conn: nc, lim: lim, want: want, pongs: make(chan []byte, 4),
		br:    bufio.NewReaderSize(nc, bufSize),
		bw:    bufio.NewWriterSize(stallWriter{nc, lim.stall}, bufSize),
		heads: make([]byte, partsMax*headMax),
	}
}

// Write buffers; in the handshake it does not.
func (g *guard) Write(p []byte) (int, error) {
	n, err := g.bw.Write(p)
	if err == nil && !g.ready {
		err = g.bw.Flush()
	}
	return n, err
}

// recv reads the next message, and eats the commands before it. A frame that was too large to be kept
// is empty and its bytes are in skipped. The last frame is the caller's, the others are good until
// the next recv. The error is io.EOF only between two messages.
func (g *guard) recv() (frames [][]byte, skipped int64, err error) {
	clear(g.frames) // what the caller has let go is not held here while nothing comes
	frames, heads, kept := g.frames[:0], g.heads, int64(0)
	for {
		flags, size, length, err := g.header()
		switch {
		case errors.Is(err, io.EOF) && len(frames) == 0 && g.br.Buffered() == 0:
			return nil, 0, err
		case err != nil:
			return nil, 0, cut(err)
		case flags&flagCommand != 0:
			if err := g.command(size, length); err != nil {
				return nil, 0, cut(err)
			}
			continue
		case size > g.lim.frame:
			return nil, 0, &LimitError{What: "bytes of a frame", Got: size, Max: g.lim.frame}
		case len(frames) == partsMax:
			return nil, 0, &LimitError{What: "frames of a message", Got: partsMax + 1, Max: partsMax}
		}
		var body []byte
		switch {
		case size > g.lim.keep:
			skipped += size
			err = g.discard(length + size)
		case kept+size > g.lim.keep+slack:
			return nil, 0, &LimitError{What: "bytes of a message", Got: kept + size, Max: g.lim.keep + slack}
		case flags&flagMore != 0 && size <= headMax:
			body, heads = heads[:size:size], heads[size:]
			err = g.read(body, length)
		default:
			body = make([]byte, size)
			err = g.read(body, length)
		}
		if err != nil {
			return nil, 0, cut(err)
		}
		kept += int64(len(body))
		if frames = append(frames, body); flags&flagMore == 0 {
			g.frames = frames
			return frames, skipped, nil
		}
	}
}

// read takes a frame's header and body.
func (g *guard) read(body []byte, length int64) error {
	_, err := g.br.Discard(int(length))
	if err == nil {
		_, err = io.ReadFull(g.br, body)
	}
	return err
}

// discard throws bytes away as they arrive.
func (g *guard) discard(n int64) error {
	for n > 0 {
		m, err := g.br.Discard(int(min(n, 1<<20)))
		if err != nil {
			return err
		}
		n -= int64(m)
	}
	return nil
}

// cut tells an end in the middle from one between two messages.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
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
