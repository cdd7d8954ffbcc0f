package author

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

// TestSpec says what to test.
type TestSpec struct {
	Dir string
	// Update writes what came out into the case files.
	Update bool
	// WasmOnly leaves `go test` out, which executes the folder's code outside of the sandbox.
	WasmOnly bool
}

// Tested is what the cases came to.
type Tested struct {
	Plugin  string       `json:"plugin"`
	Version string       `json:"version"`
	SHA256  string       `json:"sha256"`
	Limits  Cost         `json:"limits"`
	Native  *Native      `json:"native,omitempty"`
	Cases   []CaseResult `json:"cases"`
	Failed  int          `json:"failed"` // also counts a failed go test
	Updated []string     `json:"updated,omitempty"`
	Next    []string     `json:"next,omitempty"`
}

// Cost is what a call takes, or may take at most. Fuel is 0 where it is not counted, memory where it is not
// measured.
type Cost struct {
	TimeMS      float64 `json:"time_ms"`
	Fuel        uint64  `json:"fuel"`
	MemoryBytes uint64  `json:"memory_bytes"`
	InputBytes  int     `json:"input_bytes"`
	OutputBytes int     `json:"output_bytes"`
}

// CaseResult is one case.
type CaseResult struct {
	Name    string      `json:"name"`
	Builtin bool        `json:"builtin"`
	Status  string      `json:"status"` // pass, warn, fail
	Detail  string      `json:"detail,omitempty"`
	Native  string      `json:"native,omitempty"` // same, or how it differs
	Scores  []abi.Score `json:"scores,omitempty"`
	Error   string      `json:"error,omitempty"` // its code
	Cost    Cost        `json:"cost"`
}

// Test builds the plugin in a folder and runs the cases of its folder cases/ and the built-in ones, natively
// and as wasm. Every case runs twice and must give the same.
//
// # Errors
//
// Those of a build; *RequestError for a case file that cannot be read. A case that fails is in the result.
func Test(ctx context.Context, s TestSpec) (*Tested, error) {
	built, err := plugin.Build(ctx, s.Dir)
	if err != nil {
		return nil, err
	}
	own, err := readCases(filepath.Join(s.Dir, "cases"))
	if err != nil {
		return nil, err
	}
	folders, err := dataFolders(s.Dir)
	if err != nil {
		return nil, err
	}
	g, err := openGuest(s.Dir, built.Module, folders)
	if err != nil {
		return nil, err
	}
	defer g.close(ctx)
	out := g.report()
	out.Next = []string{"wevalr plugin build " + s.Dir}
	cases := append(own, g.builtins(ctx, own)...)
	var natives map[*Case]nativeResult
	if !s.WasmOnly {
		var run []*Case
		for _, c := range cases {
			if c.answer == nil {
				run = append(run, c)
			}
		}
		var results []nativeResult
		out.Native, results = g.native(ctx, s.Dir, run)
		natives = map[*Case]nativeResult{}
		for i := range results {
			natives[run[i]] = results[i]
		}
		if out.Native.Ran && !out.Native.OK {
			out.Failed++
		}
	}
	for _, c := range cases {
		got := g.call(ctx, c)
		if s.Update && c.file != "" && c.Want.differs(got) != "" {
			c.Want = got.want()
			if err := c.save(); err != nil {
				return nil, fmt.Errorf("plugin test: %w", err)
			}
			out.Updated = append(out.Updated, c.file)
		}
		res := g.judge(ctx, c, got)
		if n, ran := natives[c]; ran {
			res.compare(n, got)
		}
		out.add(res)
	}
	if p, err := g.with(ctx, firstOptions(own, "")); err == nil {
		for _, r := range g.rawChecks(ctx, p, "grease") {
			out.add(r)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

func (g *guest) report() *Tested {
	m := g.in.Manifest
	memory := m.Limits.MemoryMiB
	if memory == 0 {
		memory = usualMemoryMiB
	}
	fuel, _ := plugin.ParseFuel(m.Limits.Fuel) // the manifest has been checked
	return &Tested{
		Plugin: m.Name, Version: m.Version, SHA256: g.in.SHA256, Cases: []CaseResult{},
		Limits: Cost{
			TimeMS: float64(scoreWall.Milliseconds()), Fuel: fuel, MemoryBytes: uint64(memory) << 20,
			InputBytes: abi.MaxRequest, OutputBytes: abi.MaxResponse,
		},
	}
}

func (t *Tested) add(r CaseResult) {
	t.Cases = append(t.Cases, r)
	if r.Status == Fail {
		t.Failed++
	}
}

// judge holds a result against the case, and against a second run of the same call.
func (g *guest) judge(ctx context.Context, c *Case, got result) CaseResult {
	r := CaseResult{
		Name: c.name, Builtin: c.file == "", Scores: got.scores, Status: Pass,
		Cost: Cost{float64(got.took.Microseconds()) / 1000, got.fuel, got.memory, got.input, got.output},
	}
	if got.err != nil {
		r.Error = got.code
	}
	if c.check != nil {
		r.Status, r.Detail = c.check(got)
	} else if r.Detail = c.Want.differs(got); r.Detail != "" {
		r.Status = Fail
	}
	if c.counts || r.Status == Fail {
		return r
	}
	if again := g.call(ctx, c); again.same() != got.same() {
		r.Status, r.Detail = Fail, fmt.Sprintf("not deterministic: the same call gave %s, then %s", got.same(), again.same())
	}
	return r
}

// compare holds the native result against the module's.
func (r *CaseResult) compare(n nativeResult, got result) {
	for i := range n.Scores {
		s := &n.Scores[i]
		if s.Name == "" && i < len(got.scores) {
			s.Name = got.scores[i].Name // the host fills in the scorer's
		}
		s.Label, s.Explanation, s.Answer = scrub(s.Label), scrub(s.Explanation), scrub(s.Answer)
	}
	mine := nativeResult{Scores: got.scores, Selected: got.selected, Keys: got.keys, Code: got.code}
	if len(mine.Keys) == maxTasks && len(n.Keys) > maxTasks {
		n.Keys = n.Keys[:maxTasks]
	}
	switch {
	case got.err != nil && !own(got.err) && n.Code != "trap":
		r.Native = "not compared" // the host refused what came
	case n.same() == mine.same():
		r.Native = "same"
	default:
		r.Native = "differs: " + n.same()
		r.Status, r.Detail = Fail, fmt.Sprintf("natively %s, as wasm %s", n.same(), mine.same())
	}
}

// Text is for a person.
func (t *Tested) Text(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(tw, format+"\n", args...) } // Flush says it
	line("case\tresult\ttime\tfuel\tmemory\tin\tout\t")
	for _, c := range t.Cases {
		k, l := c.Cost, t.Limits
		line("%s\t%s\t%s%s\t%s\t%s%s\t%s%s\t%s%s\t%s", c.Name, c.Status,
			time.Duration(k.TimeMS*float64(time.Millisecond)).Round(10*time.Microsecond), near(k.TimeMS, l.TimeMS),
			count(k.Fuel), size(k.MemoryBytes), near(float64(k.MemoryBytes), float64(l.MemoryBytes)),
			size(uint64(k.InputBytes)), near(float64(k.InputBytes), float64(l.InputBytes)),
			size(uint64(k.OutputBytes)), near(float64(k.OutputBytes), float64(l.OutputBytes)), indent(c.Detail))
	}
	line("limits\t\t%s\t%s\t%s\t%s\t%s\t", time.Duration(t.Limits.TimeMS)*time.Millisecond, count(t.Limits.Fuel),
		size(t.Limits.MemoryBytes), size(uint64(t.Limits.InputBytes)), size(uint64(t.Limits.OutputBytes)))
	if err := tw.Flush(); err != nil {
		return err
	}
	return t.summary(w)
}

func (t *Tested) summary(w io.Writer) error {
	if n := t.Native; n != nil {
		same := 0
		for _, c := range t.Cases {
			if c.Native == "same" {
				same++
			}
		}
		said := fmt.Sprintf("go test: passed; %d cases give natively what the module gives", same)
		switch {
		case !n.Ran:
			said = "go test: not run: " + n.Why
		case !n.OK:
			said = "go test: failed\n  " + indent(n.Output)
		}
		if _, err := fmt.Fprintln(w, said); err != nil {
			return err
		}
	}
	for _, f := range t.Updated {
		if _, err := fmt.Fprintf(w, "updated: %s\n", f); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s %s: %d cases, %d failed\n", t.Plugin, t.Version, len(t.Cases), t.Failed)
	for _, n := range t.Next {
		if err == nil && t.Failed == 0 {
			_, err = fmt.Fprintf(w, "next:\n  %s\n", n)
		}
	}
	return err
}

// near marks what takes more than four fifths of its limit.
func near(v, limit float64) string {
	if limit > 0 && v > 0.8*limit {
		return "!"
	}
	return ""
}

func count(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func size(n uint64) string {
	switch {
	case n == 0:
		return "-"
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
