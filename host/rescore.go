package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/report"
	"github.com/wevalr/wevalr/host/rollout"
)

// RescoreOptions are those of `wevalr rescore`.
type RescoreOptions struct {
	Run  string // directory, id, or a unique beginning of an id
	Root string
	JSON bool
	// Verify scores again with the run's own scorers and compares, bit for bit.
	Verify bool
	// Plugin is a .wasm file, a source folder, or the alias of a plugin of the run.
	Plugin  string
	Scorer  string            // "": all of the plugin's
	Options []string          // KEY=<TOML value>
	Grants  map[string]string // fs name → folder
}

// Rescore scores a run's finished episodes again, without touching them: with another plugin, into
// rescored/, or with its own ones, to verify them.
func (h *Host) Rescore(ctx context.Context, opt RescoreOptions) (int, error) {
	if opt.Verify == (opt.Plugin != "") {
		return 0, UsageError{errors.New("rescore: say either --plugin or --verify")}
	}
	dir, err := journal.Find(opt.Root, opt.Run)
	if err != nil {
		return 0, UsageError{err}
	}
	cfg, err := loadConfig(filepath.Join(dir, journal.ConfigFile), Overrides{})
	if err != nil {
		return 0, err
	}
	view, err := journal.Read(dir)
	if err != nil {
		return 0, err
	}
	defer view.Close() //nolint:errcheck // nothing was written
	if opt.Verify {
		return h.verify(ctx, cfg, view, opt.JSON)
	}
	return 0, h.rescore(ctx, cfg, view, opt)
}

// rescore is the second opinion.
func (h *Host) rescore(ctx context.Context, cfg *config.Config, view *journal.View, opt RescoreOptions) error {
	entry, err := secondOpinion(cfg, opt)
	if err != nil {
		return err
	}
	ps := &plugins{}
	if ps.engine, err = newEngine(cfg, nil); err != nil {
		return err
	}
	defer ps.close(ctx)
	pl, err := ps.engine.Load(ctx, ps.spec(entry, nil))
	if err != nil {
		return err
	}
	ps.all = []*plugin.Plugin{pl}
	one := &config.Config{Plugins: []config.Plugin{*entry}}
	one.Plugins[0].Name = pl.Alias()
	if err := ps.addScorers(ctx, one, &config.Score{Plugin: pl.Alias(), Scorer: opt.Scorer}); err != nil {
		return err
	}
	if len(ps.scorers) == 0 {
		return UsageError{fmt.Errorf("rescore: plugin %q has no scorer for finished rollouts", pl.Alias())}
	}
	out, err := view.NewRescore(pl.Alias())
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // Finish says what matters
	columns := newColumns(view.Tasks(), cfg.Tasks.NumRollouts, ps.scorers)
	var mu sync.Mutex
	err = rollout.Rescore(ctx, rollout.Rescoring{
		Run: view, Rollouts: cfg.Tasks.NumRollouts, Scorers: ps.scorers, Request: request(cfg),
		Emit: func(line journal.ScoreLine) error {
			mu.Lock()
			defer mu.Unlock()
			return errors.Join(columns.add(&line), out.Add(line))
		},
	})
	if err != nil {
		return err
	}
	return h.rescored(view, out, cfg, pl, columns, opt.JSON)
}

// rescored writes and prints the second opinion.
func (h *Host) rescored(view *journal.View, out *journal.Rescore, cfg *config.Config, pl *plugin.Plugin, c *columns, asJSON bool) error {
	estimates, err := c.estimates()
	if err != nil {
		return err
	}
	m := pl.Manifest()
	s := journal.RescoreSummary{
		Run:    view.ID(),
		Plugin: journal.SummaryPlugin{Name: pl.Alias(), Plugin: m.Name, Version: m.Version, SHA256: pl.SHA256(), ABI: pl.ABI()},
		Counts: view.Counts(cfg.Tasks.NumRollouts), Scores: estimates,
	}
	if err := out.Finish(s); err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(h.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(s)
	}
	if err := report.Estimates(h.Stdout, estimates); err != nil {
		return err
	}
	for _, f := range c.failed {
		fmt.Fprintf(h.Stdout, "  %d × %s: %s, such as: %s\n", f.Count, f.Source, f.Kind, failure.Brief(f.Example)) //nolint:errcheck // best effort
	}
	_, err = fmt.Fprintf(h.Stdout, "%s\n", filepath.Join(out.Dir(), journal.SummaryFile))
	return err
}

// secondOpinion is the [[plugin]] entry that the command line describes: one of the run's, or a new one.
func secondOpinion(cfg *config.Config, opt RescoreOptions) (*config.Plugin, error) {
	entry := config.Plugin{Source: opt.Plugin}
	if known := cfg.Plugin(opt.Plugin); known != nil {
		entry = *known
	}
	entry.Options = maps.Clone(entry.Options)
	if entry.Options == nil {
		entry.Options = map[string]any{}
	}
	for _, arg := range opt.Options {
		o, err := config.ParseSet(arg)
		if err != nil {
			return nil, err
		}
		entry.Options[o.Key] = o.Value
	}
	if len(opt.Grants) > 0 {
		fs := maps.Clone(entry.Grant.FS)
		if fs == nil {
			fs = map[string]string{}
		}
		for name, dir := range opt.Grants {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return nil, UsageError{err}
			}
			fs[name] = abs
		}
		entry.Grant.FS = fs
	}
	return &entry, nil
}

// verification is what `rescore --verify` found.
type verification struct {
	Run        string   `json:"run"`
	Reproduced int      `json:"reproduced"`
	Different  int      `json:"different"`
	Missing    int      `json:"missing"` // scored now, not in the run
	Changed    []string `json:"changed"` // plugins that are not the run's any more, and in what
	Examples   []string `json:"examples"`
}

// verify scores again with the run's own scorers. The exit code is 1 where anything differs.
func (h *Host) verify(ctx context.Context, cfg *config.Config, view *journal.View, asJSON bool) (int, error) {
	ps, err := loadPlugins(ctx, cfg, nil)
	if err != nil {
		return 0, err
	}
	defer ps.close(ctx)
	v := verification{Run: view.ID(), Changed: changed(view.Identity().Plugins, ps.identities()), Examples: []string{}}
	was := map[string]string{}
	for line, err := range view.Scores() {
		if err != nil {
			return 0, err
		}
		was[lineID(&line)] = said(&line)
	}
	var mu sync.Mutex
	err = rollout.Rescore(ctx, rollout.Rescoring{
		Run: view, Rollouts: cfg.Tasks.NumRollouts, Scorers: ps.scorers, Request: request(cfg),
		Emit: func(line journal.ScoreLine) error {
			mu.Lock()
			defer mu.Unlock()
			v.compare(was, &line)
			return nil
		},
	})
	if err != nil {
		return 0, err
	}
	return v.code(), h.printVerification(&v, asJSON)
}

func (v *verification) compare(was map[string]string, line *journal.ScoreLine) {
	before, ok := was[lineID(line)]
	switch now := said(line); {
	case !ok:
		v.Missing++
	case before == now:
		v.Reproduced++
	default:
		if v.Different++; len(v.Examples) < 3 {
			v.Examples = append(v.Examples, fmt.Sprintf("%s: was %s, is %s", lineID(line), before, now))
		}
	}
}

func (v *verification) code() int {
	if v.Different+v.Missing+len(v.Changed) > 0 || v.Reproduced == 0 {
		return ExitGate
	}
	return ExitOK
}

func lineID(l *journal.ScoreLine) string {
	if l.Index == nil {
		return fmt.Sprintf("%s %s.%s", l.Key, l.Plugin, l.Scorer)
	}
	return fmt.Sprintf("%s#%d %s.%s", l.Key, *l.Index, l.Plugin, l.Scorer)
}

// said is what a line says and who said it, without what a busy machine changes.
func said(l *journal.ScoreLine) string {
	text, err := json.Marshal(map[string]any{"identity": l.Identity, "scores": l.Scores, "failure": l.Failure, "fuel": l.Fuel})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// changed names the plugins that differ from the run's, and in what.
func changed(was, now []journal.PluginIdentity) []string {
	out := []string{}
	for _, w := range was {
		for _, n := range now {
			if w.Alias != n.Alias {
				continue
			}
			for _, d := range []struct{ what, was, now string }{
				{"module sha256", w.SHA256, n.SHA256},
				{"options", w.OptionsDigest, n.OptionsDigest},
				{"grants", fmt.Sprint(w.Grants), fmt.Sprint(n.Grants)},
				{"ABI", w.ABI, n.ABI},
			} {
				if d.was != d.now {
					out = append(out, fmt.Sprintf("plugin %s: %s was %.12s, is %.12s", w.Alias, d.what, d.was, d.now))
				}
			}
		}
	}
	return out
}

func (h *Host) printVerification(v *verification, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(h.Stdout)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	for _, c := range v.Changed {
		fmt.Fprintf(h.Stdout, "changed: %s\n", c) //nolint:errcheck // the last line says it
	}
	for _, e := range v.Examples {
		fmt.Fprintf(h.Stdout, "different: %s\n", e) //nolint:errcheck // the last line says it
	}
	total := v.Reproduced + v.Different + v.Missing
	_, err := fmt.Fprintf(h.Stdout, "%d of %d scores reproduced bit for bit, %d differ, %d are new\n", v.Reproduced, total, v.Different, v.Missing)
	return err
}
