package envserver

import (
	"fmt"
	"strings"
)

// invalid collects what is wrong with a request, in the words of pydantic: a client that knows
// verifiers' server reads our refusals the same way.
type invalid struct {
	items []string
}

func (e *invalid) add(loc, kind, format string, args ...any) {
	e.items = append(e.items, fmt.Sprintf("%s\n  %s [type=%s]", loc, fmt.Sprintf(format, args...), kind))
}

// err is nil when nothing was added.
func (e *invalid) err(model string) error {
	if len(e.items) == 0 {
		return nil
	}
	s := "s"
	if len(e.items) == 1 {
		s = ""
	}
	return &validationError{text: fmt.Sprintf("%d validation error%s for %s\n%s", len(e.items), s, model, strings.Join(e.items, "\n"))}
}

// validationError refuses a request; no rollout was started.
type validationError struct{ text string }

func (e *validationError) Error() string {
	if e == nil || e.text == "" {
		return "ValidationError: "
	}
	return "ValidationError: " + e.text
}
