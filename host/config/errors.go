package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/host/failure"
)

// Error is one problem of an eval file or of an override.
type Error struct {
	File string // as given to Load; "" for an override
	Line int    // from 1; 0: the file as a whole, or an override
	From string // the override's From, such as "flag -n"; "" for the file
	Key  string // dotted, indices of arrays from 0: plugin.0.source
	Msg  string // what is wrong, and what was seen
	Hint string // what to do
}

// Error gives `where: key: what`, and the hint on a line of its own.
func (e *Error) Error() string {
	if e == nil {
		return "config: no error"
	}
	var parts []string
	switch {
	case e.From != "":
		parts = append(parts, e.From)
	case e.File != "" && e.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d", e.File, e.Line))
	case e.File != "":
		parts = append(parts, e.File)
	default:
		parts = append(parts, "config")
	}
	for _, s := range []string{e.Key, e.Msg} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	s := strings.Join(parts, ": ")
	if e.Hint != "" {
		s += "\n  " + e.Hint
	}
	return s
}

// Failure is config/invalid.
func (e *Error) Failure() *failure.Failure {
	return failure.New(failure.Config, "invalid", "%s", e.Error())
}

// Errors are all problems of one Load, overrides first, then by line.
type Errors []*Error

// Error gives one problem after the other, each as [Error] prints it.
func (e Errors) Error() string {
	if len(e) == 0 {
		return "config: no error"
	}
	lines := make([]string, len(e))
	for i, x := range e {
		lines[i] = x.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first [Error].
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, x := range e {
		out[i] = x
	}
	return out
}

// Failure is config/invalid.
func (e Errors) Failure() *failure.Failure {
	return failure.New(failure.Config, "invalid", "%s", e.Error())
}

// problems collects errors, one a place and key, so that a value with a wrong type is not also
// reported as missing.
type problems struct {
	list Errors
	seen map[string]bool
}

func (p *problems) add(e *Error) {
	id := fmt.Sprint(e.From, "\x00", e.Line, "\x00", e.Key)
	if p.seen[id] {
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[id] = true
	p.list = append(p.list, e)
}

// err is nil without problems.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.From, b.From), cmp.Compare(a.Key, b.Key))
	})
	return p.list
}
