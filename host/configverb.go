package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/wevalr/wevalr/host/config"
)

// Config checks an eval file; with print it shows it as resolved, and where each value came from.
func (h *Host) Config(path string, o Overrides, print, asJSON bool) error {
	cfg, err := loadConfig(path, o)
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		return h.configJSON(cfg)
	case print:
		return h.configTable(cfg)
	}
	_, err = fmt.Fprintf(h.Stdout, "%s: ok\n", path)
	return err
}

func (h *Host) configJSON(cfg *config.Config) error {
	type value struct {
		Value  string `json:"value"`
		Origin string `json:"origin"`
	}
	values := map[string]value{}
	for _, e := range cfg.Entries() {
		values[e.Key] = value{e.Value, e.Origin}
	}
	enc := json.NewEncoder(h.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(map[string]any{"config": values, "digest": cfg.ResultDigest(), "toml": string(cfg.TOML())})
}

func (h *Host) configTable(cfg *config.Config) error {
	t := tabwriter.NewWriter(h.Stdout, 0, 0, 2, ' ', 0)
	for _, e := range cfg.Entries() {
		fmt.Fprintf(t, "%s = %s\t# %s\n", e.Key, e.Value, e.Origin) //nolint:errcheck // Flush says it
	}
	return t.Flush()
}

// plan is what --dry-run tells.
type plan struct {
	Name     string          `json:"name"`
	Tasks    int             `json:"tasks"`
	Rollouts int             `json:"rollouts"`
	Planned  int             `json:"planned"`
	Model    string          `json:"model"`
	BaseURL  string          `json:"base_url,omitempty"`
	Server   string          `json:"server"`
	Scorers  []string        `json:"scorers"`
	Plugins  []plannedPlugin `json:"plugins"`
	Sample   []string        `json:"sample"` // the first keys
}

type plannedPlugin struct {
	Name    string `json:"name"`
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	Grants  any    `json:"grants"`
}

// dryRun enumerates the tasks and runs nothing.
func (h *Host) dryRun(ctx context.Context, cfg *config.Config, ps *plugins, asJSON bool) error {
	p := plan{
		Name: cfg.Name, Rollouts: cfg.Tasks.NumRollouts, Model: cfg.Model.Name, BaseURL: cfg.Model.Client.BaseURL,
		Server: cfg.Server.Kind(), Scorers: []string{}, Sample: []string{},
	}
	if cfg.Server.Kind() == config.Command {
		p.Server = strings.Join(cfg.Server.Command, " ")
	}
	for task, err := range taskSet(ctx, ps.tasks, &cfg.Tasks) {
		if err != nil {
			return err
		}
		if p.Tasks++; len(p.Sample) < 3 {
			p.Sample = append(p.Sample, task.Key)
		}
	}
	p.Planned = p.Tasks * p.Rollouts
	for _, s := range ps.scorers {
		p.Scorers = append(p.Scorers, s.Alias+"."+s.Name)
	}
	for _, pl := range ps.all {
		m := pl.Manifest()
		p.Plugins = append(p.Plugins, plannedPlugin{pl.Alias(), m.Name, m.Version, pl.SHA256(), pl.Effective()})
	}
	if asJSON {
		enc := json.NewEncoder(h.Stdout)
		enc.SetEscapeHTML(false)
		return enc.Encode(p)
	}
	return h.printPlan(&p)
}

func (h *Host) printPlan(p *plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d tasks × %d rollouts = %d requests to the env-server (%s), model %s", p.Name, p.Tasks, p.Rollouts, p.Planned, p.Server, p.Model)
	if p.BaseURL != "" {
		fmt.Fprintf(&b, " at %s", p.BaseURL)
	}
	fmt.Fprintf(&b, "\ntasks: %s", strings.Join(p.Sample, ", "))
	if p.Tasks > len(p.Sample) {
		b.WriteString(", …")
	}
	fmt.Fprintf(&b, "\nscorers: %s\n", strings.Join(p.Scorers, ", "))
	for _, pl := range p.Plugins {
		grants, err := json.Marshal(pl.Grants)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "plugin %s: %s %s, sha256 %.12s, grants %s\n", pl.Name, pl.Plugin, pl.Version, pl.SHA256, grants)
	}
	b.WriteString("nothing was run: --dry-run\n")
	_, err := fmt.Fprint(h.Stdout, b.String())
	return err
}
