package failure

import (
	"strings"
	"unicode/utf8"
)

// briefBytes is how long a brief text may be.
const briefBytes = 300

// Brief puts a message of several lines on one, for a table or a line of progress: what a validator
// says is in its second line, so the first alone would not do. What is over 300 bytes is cut off.
func Brief(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		if b.WriteString(line); b.Len() > briefBytes {
			break
		}
	}
	s := b.String()
	if len(s) <= briefBytes {
		return s
	}
	n := briefBytes - len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
