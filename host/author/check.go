package author

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

// Severities of findings. An error means that wevalr refuses the module.
const (
	Error   = "error"
	Warning = "warning"
	Note    = "note"
)

// Finding is one thing about a module. Codes are stable: docs/plugins.md, "Findings".
type Finding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// Report is what Check found, the worst first.
type Report struct {
	File     string    `json:"file"`
	Refused  bool      `json:"refused"`
	Findings []Finding `json:"findings"`
}

// pageSize is that of WebAssembly memory, in bytes.
const pageSize = 64 << 10

// usualMemoryMiB is what a manifest without memory_mib gets; a module that starts with more is not idle for
// nothing.
const usualMemoryMiB = 64

// Check looks at a module's bytes and runs nothing of it. file names it.
func Check(file string, b []byte) *Report {
	r := &Report{File: file, Findings: []Finding{}}
	in, err := plugin.Inspect(file, b)
	if err != nil {
		r.refusal(err)
	}
	w, werr := readWasm(b)
	if werr == nil && (err == nil || !damaged(err)) {
		r.exports(w)
	}
	if err == nil && werr == nil {
		r.manifest(in.Manifest, w)
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		rank := func(f Finding) int { return slices.Index([]string{Error, Warning, Note}, f.Severity) }
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Code, b.Code))
	})
	r.Refused = len(r.Findings) > 0 && r.Findings[0].Severity == Error
	return r
}

func (r *Report) add(code, severity, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{code, severity, fmt.Sprintf(format, args...)})
}

// codes gives the finding of each step in which host/plugin refuses a module.
func codes() map[string]string {
	return map[string]string{
		"read": "WV001", "parse": "WV001", "abi": "WV002", "imports": "WV003", "start section": "WV004",
		"memory": "WV005", "manifest": "WV006", "assets": "WV008", "exports": "WV009",
	}
}

func damaged(err error) bool {
	e, ok := errors.AsType[*plugin.ABIError](err)
	return ok && (e.Step == "read" || e.Step == "parse")
}

func (r *Report) refusal(err error) {
	if e, ok := errors.AsType[*plugin.ManifestError](err); ok {
		for _, p := range e.Problems {
			r.add("WV007", Error, "manifest: %s", p)
		}
		return
	}
	e, ok := errors.AsType[*plugin.ABIError](err)
	if !ok {
		r.add("WV001", Error, "%v", err)
		return
	}
	msg := e.Step + ": " + e.Msg
	if e.Remedy != "" {
		msg += "\n" + e.Remedy
	}
	r.add(cmp.Or(codes()[e.Step], "WV001"), Error, "%s", msg)
}

// exports compares the module's side of the border with abi.wat.
func (r *Report) exports(w *wasmFile) {
	for _, want := range []struct {
		name, sig string
		optional  bool
	}{
		{abi.ExportBuf, "i32 -> i32", false},
		{abi.ExportCall, "i32 i32 -> i64", false},
		{abi.Marker, " -> ", true}, // whether it is there is WV002's business
		{abi.ExportInitialize, " -> ", true},
	} {
		got, there := w.exports[want.name]
		switch {
		case !there && !want.optional:
			r.add("WV009", Error, "exports: %s is missing\nsee plugins/abi/abi.wat", want.name)
		case there && got != want.sig:
			r.add("WV009", Error, "exports: %s is (%s), want (%s)\nsee plugins/abi/abi.wat", want.name, got, want.sig)
		}
	}
	if !w.memory {
		r.add("WV009", Error, "exports: memory is missing\nsee plugins/abi/abi.wat")
	}
	if w.debug > 0 {
		r.add("WV104", Warning, "debug build: %d KiB of debug information and names; strip it (Go: -ldflags='-s -w')", (w.debug+1023)/1024)
	}
}

// manifest compares what the manifest asks for with what the code can use.
func (r *Report) manifest(m *plugin.Manifest, w *wasmFile) {
	limit := cmp.Or(m.Limits.MemoryMiB, usualMemoryMiB)
	start := int(w.minPages * pageSize >> 20)
	switch {
	case start > limit:
		r.add("WV005", Error, "memory: starts with %d MiB, its limit is %d MiB\nraise limits.memory_mib", start, limit)
	case start > usualMemoryMiB:
		r.add("WV101", Warning, "memory: starts with %d MiB, and every instance holds that much", start)
	}
	q := &m.Capabilities
	unreachable := func(asked bool, name, how string, reachable bool) {
		if asked && !reachable {
			r.add("WV102", Warning, "capability %s is asked for, but the module imports nothing that %s: leave it out", name, how)
		}
	}
	unreachable(q.Env != nil, "env", "calls the env-server", w.importsEnv())
	unreachable(len(q.FS) > 0, "fs", "opens files", w.imports[wasi+"path_open"])
	unreachable(q.Vars != nil, "vars", "reads environment variables", w.imports[wasi+"environ_get"])
	unreachable(q.Clock != nil, "clock", "reads a clock", w.imports[wasi+"clock_time_get"])
	unreachable(q.Random != nil, "random", "reads entropy", w.imports[wasi+"random_get"])
	if q.Clock == nil && w.imports[wasi+"clock_time_get"] {
		r.add("WV103", Note, "the clock is imported and not asked for: the plugin sees a virtual one (Go's runtime imports it always)")
	}
	if q.Random == nil && w.imports[wasi+"random_get"] {
		r.add("WV103", Note, "entropy is imported and not asked for: the plugin sees a stream seeded per rollout (Go's runtime imports it always)")
	}
	r.words(m)
}

// words reports what a reader of inspect would miss.
func (r *Report) words(m *plugin.Manifest) {
	for _, q := range requests(&m.Capabilities) {
		if q.Why == "" {
			r.add("WV105", Warning, "capability %s: no why: an operator is asked to grant it and is not told what for", q.Capability)
		}
	}
	for _, s := range m.Scorers {
		if len(s.Range) == 0 && !s.Binary {
			r.add("WV106", Note, "scorer %s: no range: any finite number counts as a score", s.Name)
		}
	}
	for _, o := range m.Options {
		if o.Help == "" {
			r.add("WV107", Warning, "option %s: no help", o.Name)
		}
	}
}

// Text is for a person.
func (r *Report) Text(w io.Writer) error {
	for _, f := range r.Findings {
		if _, err := fmt.Fprintf(w, "%s %s: %s\n", f.Code, f.Severity, indent(f.Message)); err != nil {
			return err
		}
	}
	verdict := "accepted"
	if r.Refused {
		verdict = "refused"
	}
	_, err := fmt.Fprintf(w, "%s: %s, %d findings\n", r.File, verdict, len(r.Findings))
	return err
}
