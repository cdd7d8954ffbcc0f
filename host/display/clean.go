package display

import (
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Clean wraps w so that no control character reaches a terminal: of C0 only newline and tab pass; DEL,
// C1, the bidirectional controls and the line separators become U+FFFD, as do bytes that are not
// UTF-8. Safe for concurrent use.
func Clean(w io.Writer) io.Writer { return &clean{w: w} }

type clean struct {
	mu   sync.Mutex
	w    io.Writer
	rest []byte // an incomplete rune at the end of the last write
}

// Write returns len(p) when everything was passed on; an incomplete rune waits for the next write.
func (c *clean) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := p
	if len(c.rest) > 0 {
		in = append(c.rest, p...)
	}
	out := make([]byte, 0, len(in))
	for len(in) > 0 && utf8.FullRune(in) {
		r, n := utf8.DecodeRune(in)
		if harmful(r) || r == utf8.RuneError && n == 1 {
			out = utf8.AppendRune(out, utf8.RuneError)
		} else {
			out = append(out, in[:n]...)
		}
		in = in[n:]
	}
	c.rest = append([]byte(nil), in...)
	if _, err := c.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func harmful(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
