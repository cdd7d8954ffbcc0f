package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/wevalr/wevalr/host/plugin"
)

// LockSpec says what to lock: the plugins of one eval file.
type LockSpec struct {
	Eval    string // its path; the lock lies beside it
	Plugins []Source
	// Accept writes also where a plugin asks for more than was locked.
	Accept bool
}

// Source is one [[plugin]] of the eval file.
type Source struct{ Alias, Path string }

// Change is what is new of one plugin.
type Change struct {
	Name string `json:"name"`
	// What is added, changed, removed or unchanged.
	What     string   `json:"what"`
	Was      string   `json:"was,omitempty"` // sha256
	Now      string   `json:"now,omitempty"`
	Requests []string `json:"requests"`
	Widened  []string `json:"widened,omitempty"` // requests that were not locked
}

// Locked is what LockPlugins did.
type Locked struct {
	File    string   `json:"file"`
	Written bool     `json:"written"`
	Changes []Change `json:"changes"`
	Next    []string `json:"next"`
}

// LockPlugins writes the lock of an eval file as its plugins are now. Where one asks for more than was
// locked, nothing is written unless that is accepted. No guest code runs.
//
// # Errors
//
// Those of a build or of plugin.Inspect; *plugin.LockError for a lock file that cannot be read.
func LockPlugins(ctx context.Context, s LockSpec) (*Locked, error) {
	eval, err := filepath.Abs(s.Eval)
	if err != nil {
		return nil, fmt.Errorf("plugin lock: %w", err)
	}
	folder := filepath.Dir(eval)
	out := &Locked{File: filepath.Join(filepath.Dir(s.Eval), plugin.LockFile)}
	was, err := plugin.ReadLock(out.File)
	if errors.Is(err, fs.ErrNotExist) {
		was, err = &plugin.Lock{}, nil
	}
	if err != nil {
		return nil, err
	}
	now := &plugin.Lock{}
	var errs []error
	for _, p := range s.Plugins {
		entry, err := plugin.NewLocked(ctx, folder, p.Alias, p.Path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		now.Plugins = append(now.Plugins, entry)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	wider := out.compare(was, now)
	if wider && !s.Accept {
		out.Next = []string{"wevalr plugin lock " + s.Eval + " --accept   # if the plugin shall have what is marked with +"}
		return out, nil
	}
	if err := now.Write(out.File); err != nil {
		return nil, err
	}
	out.Written = true
	out.Next = []string{"git add " + out.File, "wevalr run " + s.Eval}
	return out, nil
}

// compare lists the changes and reports whether a request has widened.
func (out *Locked) compare(was, now *plugin.Lock) bool {
	wider := false
	out.Changes = []Change{}
	for _, p := range now.Plugins {
		c := Change{Name: p.Name, What: "added", Now: p.SHA256, Requests: p.Requests}
		if old := was.Find(p.Name); old != nil {
			c.Was, c.What = old.SHA256, "changed"
			if old.SHA256 == p.SHA256 {
				c.What = "unchanged"
			}
			c.Widened = plugin.Widened(*old, p)
			wider = wider || len(c.Widened) > 0
		}
		out.Changes = append(out.Changes, c)
	}
	for _, p := range was.Plugins {
		if now.Find(p.Name) == nil {
			out.Changes = append(out.Changes, Change{Name: p.Name, What: "removed", Was: p.SHA256, Requests: p.Requests})
		}
	}
	return wider
}

// Text is for a person.
func (out *Locked) Text(w io.Writer) error {
	var b strings.Builder
	for _, c := range out.Changes {
		fmt.Fprintf(&b, "%s %s", c.What, c.Name)
		switch c.What {
		case "changed":
			fmt.Fprintf(&b, ": sha256 %.12s → %.12s", c.Was, c.Now)
		case "added", "unchanged":
			fmt.Fprintf(&b, ": sha256 %.12s", c.Now)
		}
		if len(c.Widened) == 0 && c.What != "removed" {
			fmt.Fprintf(&b, ", asks for %s", orNothing(c.Requests))
		}
		b.WriteString("\n")
		for _, r := range c.Widened {
			fmt.Fprintf(&b, "  + %s\n", r)
		}
	}
	if out.Written {
		fmt.Fprintf(&b, "written: %s\n", out.File)
	} else {
		b.WriteString("not written: a plugin asks for more than was accepted\n")
	}
	fmt.Fprintf(&b, "next:\n  %s\n", strings.Join(out.Next, "\n  "))
	_, err := io.WriteString(w, b.String())
	return err
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
