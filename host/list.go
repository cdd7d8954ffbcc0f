package host

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/stats"
)

// listed is one run in a list.
type listed struct {
	ID      string           `json:"id"`
	Name    string           `json:"name"`
	Dir     string           `json:"dir"`
	Summary *journal.Summary `json:"summary,omitempty"`
	Error   string           `json:"error,omitempty"`
}

// List prints the runs under root, by name and time. A run that cannot be read is listed with the reason.
func (h *Host) List(root string, asJSON bool) error {
	dirs, err := journal.List(root)
	if err != nil {
		return err
	}
	runs := make([]listed, len(dirs))
	for i, dir := range dirs {
		runs[i] = look(dir)
	}
	if asJSON {
		enc := json.NewEncoder(h.Stdout)
		enc.SetEscapeHTML(false)
		return enc.Encode(map[string]any{"runs": runs})
	}
	if len(runs) == 0 {
		_, err := fmt.Fprintf(h.Stdout, "no runs in %s\n", root)
		return err
	}
	t := tabwriter.NewWriter(h.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "run\tid\tfinished\towed\tscores") //nolint:errcheck // Flush says it
	for _, r := range runs {
		finished, owed, scores := "?", "?", "no summary: going on, or killed"
		switch {
		case r.Error != "":
			scores = firstLine(r.Error)
		case r.Summary != nil:
			finished = fmt.Sprint(r.Summary.Completed + r.Summary.Limit)
			owed = fmt.Sprint(r.Summary.Owed)
			scores = oneLine(r.Summary.Scores)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Name, r.ID, finished, owed, scores) //nolint:errcheck // Flush says it
	}
	return t.Flush()
}

func look(dir string) listed {
	r := listed{Dir: dir}
	id, err := journal.ReadIdentity(dir)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.ID, r.Name = id.ID, id.Name
	if s, err := journal.ReadSummary(dir); err == nil {
		r.Summary = s
	}
	return r
}

func oneLine(scores map[string]stats.Estimate) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		e := scores[name]
		if e.Mean != nil {
			out = append(out, fmt.Sprintf("%s %.3f", name, *e.Mean))
		}
	}
	return strings.Join(out, ", ")
}
