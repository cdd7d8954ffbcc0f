package meter

import (
	"fmt"
	"strings"
)

// Refusal says why a module was not taken. Its zero value prints.
type Refusal struct { //nolint:errname // the glossary's word for it
	Section string // "code", "type", …; "module" for the file as a whole
	Offset  int    // in the file, in bytes
	Rule    string // what was looked at: "locals", "type index", "section order"
	Saw     string // what was there
	Limit   string // what is allowed; "" where the rule has no number
	Remedy  string // what the author of the module can do; "" for a malformed module
}

func (e *Refusal) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "meter: %s section, offset %d: %s", orElse(e.Section, "unknown"), e.Offset, orElse(e.Rule, "refused"))
	if e.Saw != "" {
		b.WriteString(": " + e.Saw)
	}
	if e.Limit != "" {
		b.WriteString(", limit " + e.Limit)
	}
	if e.Remedy != "" {
		b.WriteString("\n" + e.Remedy)
	}
	return b.String()
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
