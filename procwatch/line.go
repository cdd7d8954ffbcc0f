package procwatch

import (
	"bytes"
	"time"
)

// Line is one line of output, without its newline. Its bytes are as the child wrote them.
type Line struct {
	// Seq counts the lines of both streams from 1, in the order in which they were read.
	Seq int64
	// Stream is "stdout" or "stderr".
	Stream string
	Text   []byte
	// Truncated: the line was longer than MaxLine and goes on in this stream's next Line.
	Truncated bool
	At        time.Time
}

// splitter cuts a stream into lines of at most max bytes, however its bytes come.
type splitter struct {
	max  int
	part []byte
	emit func(text []byte, truncated bool) // owns text
}

func (s *splitter) write(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		room := s.max - len(s.part)
		switch {
		case end >= 0 && end <= room:
			s.take(b[:end], false)
			b = b[end+1:]
		case len(b) > room: // a byte that is no newline follows: only now it is too long
			s.take(b[:room], true)
			b = b[room:]
		default:
			s.part = append(s.part, b...)
			return
		}
	}
}

// flush emits the last line, which has no newline.
func (s *splitter) flush() {
	if len(s.part) > 0 {
		s.take(nil, false)
	}
}

func (s *splitter) take(b []byte, truncated bool) {
	text := make([]byte, 0, len(s.part)+len(b))
	text = append(append(text, s.part...), b...)
	s.part = s.part[:0]
	s.emit(text, truncated)
}
