package author

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/wevalr/wevalr/host/plugin"
)

// Description is what a module says of itself: nothing of it runs.
type Description struct {
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	ABI      string    `json:"abi"`
	SHA256   string    `json:"sha256"`
	Size     int       `json:"size"` // bytes
	Provides []string  `json:"provides"`
	Requests []Request `json:"requests"`
	Options  []Option  `json:"options"`
	Scorers  []Scorer  `json:"scorers"`
	// Grants are those of an eval file's entries for this plugin; nil without one.
	Grants []Granted `json:"grants,omitempty"`
}

// Request is a capability that the manifest asks for.
type Request struct {
	Capability string   `json:"capability"`      // env, env.sampling, task_env, fs.NAME, vars, clock, random
	Names      []string `json:"names,omitempty"` // sampling keys, task data keys, variables
	Optional   bool     `json:"optional"`
	Why        string   `json:"why"`
}

// Option is a parameter; without a default it must be set.
type Option struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default any    `json:"default"` // null = none
	Help    string `json:"help"`
}

// Scorer is one number that the plugin computes.
type Scorer struct {
	Name           string    `json:"name"`
	Kind           string    `json:"kind"`
	Range          []float64 `json:"range,omitempty"`
	Binary         bool      `json:"binary"`
	HigherIsBetter bool      `json:"higher_is_better"`
	View           []string  `json:"view"`
}

// Granted is what one entry of an eval file makes of the requests.
type Granted struct {
	Alias        string            `json:"alias"`
	Effective    []EffectiveGrant  `json:"effective"`
	NotRequested []string          `json:"not_requested,omitempty"` // granted and not asked for: run refuses it
	Options      map[string]string `json:"options,omitempty"`       // as the file sets them
}

// States of a request under an eval file.
const (
	StateGranted = "granted"
	StateDenied  = "denied"  // optional: the plugin lives without
	StateMissing = "missing" // run refuses the plugin
)

// EffectiveGrant is one request and what became of it.
type EffectiveGrant struct {
	Capability string   `json:"capability"`
	State      string   `json:"state"`
	Names      []string `json:"names,omitempty"` // those that are granted
	Path       string   `json:"path,omitempty"`  // of a folder
}

// Inspect describes a module's bytes. file names it in errors.
//
// # Errors
//
// Those of plugin.Inspect.
func Inspect(file string, b []byte) (*Description, error) {
	in, err := plugin.Inspect(file, b)
	if err != nil {
		return nil, err
	}
	m := in.Manifest
	d := &Description{
		Name: m.Name, Version: m.Version, ABI: in.ABI, SHA256: in.SHA256, Size: in.Size, Provides: m.Provides,
		Requests: requests(&m.Capabilities), Options: []Option{}, Scorers: []Scorer{},
	}
	for _, o := range m.Options {
		d.Options = append(d.Options, Option{o.Name, o.Type, o.Default, o.Help})
	}
	for i := range m.Scorers {
		s := &m.Scorers[i]
		d.Scorers = append(d.Scorers, Scorer{s.Name, s.Kind, s.Range, s.Binary, s.Better(), s.Views()})
	}
	return d, nil
}

// requests lists the capabilities in the order of the manifest's documentation.
func requests(q *plugin.Capabilities) []Request {
	out := []Request{}
	if e := q.Env; e != nil {
		out = append(out, Request{"env", nil, e.Optional, e.Why})
		if len(e.Sampling) > 0 {
			out = append(out, Request{"env.sampling", e.Sampling, e.Optional, e.Why})
		}
	}
	if k := q.TaskEnv; k != nil {
		out = append(out, Request{"task_env", k.Keys, k.Optional, k.Why})
	}
	for _, name := range sortedKeys(q.FS) {
		out = append(out, Request{"fs." + name, nil, q.FS[name].Optional, q.FS[name].Why})
	}
	if v := q.Vars; v != nil {
		out = append(out, Request{"vars", v.Names, v.Optional, v.Why})
	}
	if c := q.Clock; c != nil {
		out = append(out, Request{"clock", nil, c.Optional, c.Why})
	}
	if c := q.Random; c != nil {
		out = append(out, Request{"random", nil, c.Optional, c.Why})
	}
	return out
}

// AddGrants says what an entry of an eval file makes of the requests. It shows and enforces nothing: that
// is the host's, when the plugin is loaded.
func (d *Description) AddGrants(alias string, g plugin.Grants, options map[string]any) {
	out := Granted{Alias: alias, Effective: []EffectiveGrant{}, Options: map[string]string{}}
	asked := map[string]bool{}
	for _, r := range d.Requests {
		asked[r.Capability] = true
		e := EffectiveGrant{Capability: r.Capability}
		given, ok := granted(g, r.Capability)
		e.Names = keep(r.Names, given)
		e.Path = g.FS[strings.TrimPrefix(r.Capability, "fs.")]
		for _, n := range given {
			if !slices.Contains(r.Names, n) {
				out.NotRequested = append(out.NotRequested, r.Capability+"="+n)
			}
		}
		switch {
		case ok && len(e.Names) == len(r.Names), ok && r.Optional && (len(r.Names) == 0 || len(e.Names) > 0):
			e.State = StateGranted
		case r.Optional:
			e.State = StateDenied
		default:
			e.State = StateMissing
		}
		out.Effective = append(out.Effective, e)
	}
	for _, c := range append([]string{"env", "env.sampling", "task_env", "vars", "clock", "random"}, prefixed("fs.", sortedKeys(g.FS))...) {
		if _, ok := granted(g, c); ok && !asked[c] {
			out.NotRequested = append(out.NotRequested, c)
		}
	}
	for k, v := range options {
		out.Options[k] = fmt.Sprint(v)
	}
	d.Grants = append(d.Grants, out)
}

// granted looks a capability up in the grants: the names given, and whether anything is.
func granted(g plugin.Grants, capability string) ([]string, bool) {
	switch capability {
	case "env":
		return nil, g.Env != nil
	case "env.sampling":
		if g.Env == nil {
			return nil, false
		}
		return g.Env.Sampling, len(g.Env.Sampling) > 0
	case "task_env":
		return g.TaskEnv, len(g.TaskEnv) > 0
	case "vars":
		return g.Vars, len(g.Vars) > 0
	case "clock":
		return nil, g.Clock
	case "random":
		return nil, g.Random
	}
	_, ok := g.FS[strings.TrimPrefix(capability, "fs.")]
	return nil, ok
}

// Text is for a person.
func (d *Description) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(t, format+"\n", args...) } // Flush says it
	line("%s %s\tABI %s, %d bytes", d.Name, d.Version, d.ABI, d.Size)
	line("sha256\t%s", d.SHA256)
	line("provides\t%s", strings.Join(d.Provides, ", "))
	for i, r := range d.Requests {
		head := "requests"
		if i > 0 {
			head = ""
		}
		line("%s\t%s", head, r.text())
	}
	if len(d.Requests) == 0 {
		line("requests\tnothing")
	}
	for _, s := range d.Scorers {
		line("scorer %s\t%s", s.Name, s.text())
	}
	for _, o := range d.Options {
		def := "must be set"
		if o.Default != nil {
			def = fmt.Sprintf("default %#v", o.Default)
		}
		line("option %s\t%s, %s: %s", o.Name, o.Type, def, o.Help)
	}
	for _, g := range d.Grants {
		for _, e := range g.Effective {
			line("[[plugin]] %s\t%s: %s", g.Alias, e.Capability, strings.TrimSpace(strings.Join(append([]string{e.State}, e.Names...), " ")+" "+e.Path))
		}
		for _, n := range g.NotRequested {
			line("[[plugin]] %s\t%s: granted, but not asked for: run refuses it", g.Alias, n)
		}
	}
	return t.Flush()
}

func (r Request) text() string {
	s := strings.TrimSpace(r.Capability + " " + strings.Join(r.Names, ", "))
	if r.Optional {
		s += " (optional)"
	}
	if r.Why != "" {
		s += ": " + r.Why
	}
	return s
}

func (s Scorer) text() string {
	out := s.Kind
	if s.Binary {
		out += ", binary"
	}
	if len(s.Range) == 2 {
		out += fmt.Sprintf(", %g to %g", s.Range[0], s.Range[1])
	}
	if !s.HigherIsBetter {
		out += ", lower is better"
	}
	return out + ", reads " + strings.Join(s.View, ", ")
}
