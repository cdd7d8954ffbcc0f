package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/report"
	"github.com/wevalr/wevalr/host/wire"
)

// ShowOptions are those of `wevalr show`.
type ShowOptions struct {
	Run  string // directory, id, or a unique beginning of an id
	Key  string // a task's key; "": the run's result
	Root string
	JSON bool
}

// Show prints a run's result, or what the rollouts of one task said and scored. It takes no lock: a run
// that is going on can be looked at.
func (h *Host) Show(_ context.Context, opt ShowOptions) error {
	dir, err := journal.Find(opt.Root, opt.Run)
	if err != nil {
		return UsageError{err}
	}
	view, err := journal.Read(dir)
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // nothing was written
	if opt.Key == "" {
		return h.showRun(view, opt.JSON)
	}
	return h.showTask(view, opt)
}

func (h *Host) showRun(view *journal.View, asJSON bool) error {
	s, err := view.Summary()
	if errors.Is(err, fs.ErrNotExist) {
		return h.showUnfinished(view, asJSON)
	}
	if err != nil {
		return err
	}
	if asJSON {
		return report.JSON(h.Stdout, s)
	}
	return report.Text(h.Stdout, s)
}

// showUnfinished prints the counts of a run that has no summary: it is going on, or was killed.
func (h *Host) showUnfinished(view *journal.View, asJSON bool) error {
	rollouts, err := plannedRollouts(view)
	if err != nil {
		return err
	}
	c := view.Counts(rollouts)
	if asJSON {
		return json.NewEncoder(h.Stdout).Encode(map[string]any{"id": view.ID(), "dir": view.Dir(), "counts": c})
	}
	_, err = fmt.Fprintf(h.Stdout, "%s has no summary: its last attempt is going on, or was killed\n"+
		"%d planned = %d completed + %d limit + %d errors + %d cancelled + %d never run\ngo on with: wevalr resume %s\n",
		view.Dir(), c.Planned, c.Completed, c.Limit, c.Errors, c.Cancelled, c.NeverRun, view.Dir())
	return err
}

func plannedRollouts(view *journal.View) (int, error) {
	cfg, err := config.Loader{}.Load(view.Dir()+"/"+journal.ConfigFile, nil)
	if err != nil {
		return 0, err
	}
	return cfg.Tasks.NumRollouts, nil
}

// shown is what there is to see of one rollout.
type shown struct {
	Index   int                 `json:"index"`
	Outcome failure.Outcome     `json:"outcome"`
	Try     int                 `json:"try"`
	Failure *failure.Failure    `json:"failure,omitempty"`
	Seconds float64             `json:"seconds"`
	Usage   journal.Usage       `json:"usage"`
	Scores  []journal.ScoreLine `json:"scores,omitempty"`
	Episode json.RawMessage     `json:"episode,omitempty"`
	Partial []json.RawMessage   `json:"partial,omitempty"`
}

func (h *Host) showTask(view *journal.View, opt ShowOptions) error {
	if _, ok := view.Tasks().Ordinal(opt.Key); !ok {
		return UsageError{fmt.Errorf("show: run %s has no task %q; its keys stand in %s/%s", view.ID(), opt.Key, view.Dir(), journal.TasksFile)}
	}
	rollouts, err := collect(view, opt.Key)
	if err != nil {
		return err
	}
	if opt.JSON {
		enc := json.NewEncoder(h.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(map[string]any{"run": view.ID(), "key": opt.Key, "rollouts": rollouts})
	}
	if len(rollouts) == 0 {
		_, err := fmt.Fprintf(h.Stdout, "%s: no rollout has ended yet\n", opt.Key)
		return err
	}
	for i := range rollouts {
		if err := printRollout(h.Stdout, opt.Key, &rollouts[i]); err != nil {
			return err
		}
	}
	return nil
}

// collect finds the last end of each rollout of a task, its episode, scores and partial.
func collect(view *journal.View, key string) ([]shown, error) {
	last := map[int]journal.Finish{}
	top := -1
	for f, err := range view.Finishes() {
		if err != nil {
			return nil, err
		}
		if f.Key == key {
			last[f.Index] = f
			top = max(top, f.Index)
		}
	}
	var out []shown
	at := map[int]int{}
	for i := range top + 1 {
		f, ok := last[i]
		if !ok {
			continue
		}
		s := shown{Index: i, Outcome: f.Outcome, Try: f.Try, Failure: f.Failure, Seconds: f.End.Sub(f.Start).Seconds(), Usage: f.Usage}
		if f.Episode != (journal.Ref{}) {
			line, err := view.Episode(f.Episode)
			if err != nil {
				return nil, err
			}
			s.Episode = line
		}
		at[i] = len(out)
		out = append(out, s)
	}
	for line, err := range view.Scores() {
		if err != nil {
			return nil, err
		}
		if line.Key != key || line.Index == nil {
			continue
		}
		if i, ok := at[*line.Index]; ok {
			out[i].Scores = append(out[i].Scores, line)
		}
	}
	for p, err := range view.Partials() {
		if err != nil {
			return nil, err
		}
		if i, ok := at[p.Index]; ok && p.Key == key && p.Try == out[i].Try {
			out[i].Partial = p.Traces
		}
	}
	return out, nil
}

func printRollout(w io.Writer, key string, s *shown) error {
	var b strings.Builder
	fmt.Fprintf(&b, "── %s#%d · %s · try %d · %.2f s · %d tokens in, %d out\n", key, s.Index, s.Outcome, s.Try, s.Seconds, s.Usage.InputTokens, s.Usage.OutputTokens)
	if s.Failure != nil {
		fmt.Fprintf(&b, "failure: %s\n", s.Failure.Error())
	}
	if len(s.Episode) > 0 {
		ep, err := wire.ParseEpisode(s.Episode)
		if err != nil {
			return err
		}
		for i := range ep.Traces {
			title := ""
			if len(ep.Traces) > 1 {
				title = "trace " + ep.Traces[i].ID
			}
			if len(ep.Traces) > 1 && &ep.Traces[i] == ep.Selected() {
				title += " (selected: this one is scored)"
			}
			printTrace(&b, &ep.Traces[i], title)
		}
	}
	if len(s.Partial) > 0 {
		fmt.Fprintf(&b, "partial (what had arrived; never scored): %d traces\n", len(s.Partial))
		for _, t := range s.Partial {
			fmt.Fprintf(&b, "  %s\n", t)
		}
	}
	for _, line := range s.Scores {
		printScores(&b, &line)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func printTrace(b *strings.Builder, t *wire.Trace, title string) {
	if title != "" {
		fmt.Fprintf(b, "%s\n", title)
	}
	for _, n := range t.Path() {
		fmt.Fprintf(b, "[%s] %s\n", n.Message.Role, n.Message.Content.String())
		for _, c := range n.Message.ToolCalls {
			fmt.Fprintf(b, "  calls %s(%s)\n", c.Name, c.Arguments)
		}
	}
	for _, e := range t.Errors {
		fmt.Fprintf(b, "error: %s: %s\n", e.Type, failure.Brief(e.Message))
	}
	if t.StopCondition != "" {
		fmt.Fprintf(b, "stopped by: %s\n", t.StopCondition)
	}
}

func printScores(b *strings.Builder, line *journal.ScoreLine) {
	name := line.Plugin + "." + line.Scorer
	if line.Failure != nil {
		fmt.Fprintf(b, "score %s: %s\n", name, line.Failure.Error())
	}
	for _, v := range line.Scores {
		full := name
		if v.Name != "" && v.Name != line.Scorer {
			full += "." + v.Name
		}
		value := "skipped"
		if v.Value != nil {
			value = fmt.Sprint(*v.Value)
		}
		fmt.Fprintf(b, "score %s = %s", full, value)
		if v.Answer != "" {
			fmt.Fprintf(b, " (answer %q)", v.Answer)
		}
		if v.Explanation != "" {
			fmt.Fprintf(b, ": %s", v.Explanation)
		}
		b.WriteString("\n")
	}
}
