package plugin

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// scrub makes untrusted text safe to show: no control characters but newline and tab, no
// direction overrides, valid UTF-8.
func scrub(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || unsafeRune(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unsafeRune(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}

func unsafeRune(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// cut shortens s to at most n bytes and says so.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "… (cut)"
}

// ring keeps the last bytes that were written to it, and up to twice as many: to move them at each of many
// small writes would take far longer than a guest is charged for one. Not safe for concurrent use: a guest
// writes from one goroutine.
type ring struct {
	buf  []byte
	max  int
	lost bool
}

// Write never fails.
func (r *ring) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > r.max {
		p, r.lost = p[len(p)-r.max:], true
	}
	if len(r.buf)+len(p) > 2*r.max {
		r.buf, r.lost = append(r.buf[:0], r.last()...), true
	}
	r.buf = append(r.buf, p...)
	return n, nil
}

func (r *ring) reset() { r.buf, r.lost = r.buf[:0], false }

// last is what is left.
func (r *ring) last() []byte { return r.buf[max(len(r.buf)-r.max, 0):] }

// text is what is left, scrubbed.
func (r *ring) text() string {
	s := strings.TrimRight(scrub(string(r.last())), "\n")
	if r.lost || len(r.buf) > r.max {
		return "…" + s
	}
	return s
}
