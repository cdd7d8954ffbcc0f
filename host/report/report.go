// Package report turns a summary into something a person or another program reads. Pure functions from
// journal.Summary to a writer; nothing is computed here that does not stand in the summary.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/stats"
)

// JSON prints the summary as one object, as it stands in summary.json.
func JSON(w io.Writer, s *journal.Summary) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

// Text prints the table that a run ends with.
func Text(w io.Writer, s *journal.Summary) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s · %s", s.Run.Name, s.Run.ID)
	if s.Run.Attempts > 1 {
		fmt.Fprintf(&b, " · attempt %d", s.Run.Attempts)
	}
	b.WriteString("\n\n")
	estimates(&b, "score", s.Scores)
	estimates(&b, "reward", s.Rewards)
	counts(&b, s)
	for i, f := range s.Failures {
		if i == maxFailures {
			fmt.Fprintf(&b, "  and %d kinds more, in %s\n", len(s.Failures)-i, journal.SummaryFile)
			break
		}
		fmt.Fprintf(&b, "  %d × %s: %s, such as: %s\n", f.Count, f.Source, f.Kind, failure.Brief(f.Example))
	}
	if u := s.Usage; u.InputTokens+u.OutputTokens > 0 {
		fmt.Fprintf(&b, "tokens: %d in, %d out", u.InputTokens, u.OutputTokens)
		if u.Cost != nil {
			fmt.Fprintf(&b, "; cost %.4f", *u.Cost)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "took %.1f s\n", s.DurationS)
	_, err := io.WriteString(w, b.String())
	return err
}

// maxFailures is how many kinds of failure are printed, the most frequent ones: plugins may name thousands.
const maxFailures = 20

// counts prints the denominators: every planned rollout is in exactly one of them.
func counts(b *strings.Builder, s *journal.Summary) {
	parts := []string{fmt.Sprintf("%d completed", s.Completed)}
	for _, p := range []struct {
		n    int
		name string
	}{{s.Limit, "limit"}, {s.Errors, "errors"}, {s.Cancelled, "cancelled"}, {s.NeverRun, "never run"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.name))
		}
	}
	fmt.Fprintf(b, "rollouts: %d planned = %s", s.Planned, strings.Join(parts, " + "))
	if s.Retried > 0 {
		fmt.Fprintf(b, "; %d took more than one try", s.Retried)
	}
	b.WriteString("\n")
}

// Estimates prints a table of scores alone.
func Estimates(w io.Writer, scores map[string]stats.Estimate) error {
	var b strings.Builder
	estimates(&b, "score", scores)
	_, err := io.WriteString(w, b.String())
	return err
}

func estimates(b *strings.Builder, title string, all map[string]stats.Estimate) {
	if len(all) == 0 {
		return
	}
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\tmean ± standard error [95 %% interval]\ttasks\tnotes\n", title) //nolint:errcheck // a strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := all[name]
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", name, stats.Format(e), e.Tasks, notes(&e)) //nolint:errcheck // a strings.Builder
	}
	_ = t.Flush()
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	b.WriteString("\n")
}

// notes says what else a reader must know of an estimate: what is missing, and pass@k.
func notes(e *stats.Estimate) string {
	var out []string
	if e.Missing > 0 {
		note := fmt.Sprintf("%d missing", e.Missing)
		if e.Bounds != nil {
			note += fmt.Sprintf(" (with them at worst %.3f, at best %.3f)", e.Bounds[0], e.Bounds[1])
		}
		out = append(out, note)
	}
	if e.Null > 0 {
		out = append(out, fmt.Sprintf("%d skipped", e.Null))
	}
	if e.Clusters > 0 {
		out = append(out, fmt.Sprintf("%d clusters", e.Clusters))
	}
	for _, k := range slices.Sorted(maps.Keys(e.PassAt)) {
		if k > 1 {
			out = append(out, fmt.Sprintf("pass@%d %.3f", k, e.PassAt[k]))
		}
	}
	return strings.Join(out, ", ")
}
