package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/host/rollout"
	"github.com/wevalr/wevalr/plugins/abi"
)

// plugins are the loaded modules of one eval file, by their part in it.
type plugins struct {
	engine  *plugin.Engine
	all     []*plugin.Plugin // one for each [[plugin]] entry, in the file's order
	extra   []*plugin.Plugin // the same modules under [[score]] options
	tasks   *plugin.Plugin
	driver  *plugin.Plugin // nil: the host drives
	scorers []rollout.Scorer
	mask    func(string) string // hides secrets in what guests say; nil: nothing to hide
}

// loadPlugins builds, checks and starts every plugin of the file, side by side, and finds each part.
// Every plugin that cannot be loaded is reported, not only the first.
func loadPlugins(ctx context.Context, cfg *config.Config, log *slog.Logger) (*plugins, error) {
	engine, err := newEngine(cfg, log)
	if err != nil {
		return nil, err
	}
	list, _ := secrets(os.Environ(), clientVars(cfg))
	p := &plugins{engine: engine, mask: textMasker(list), all: make([]*plugin.Plugin, len(cfg.Plugins))}
	if err := p.load(ctx, cfg); err != nil {
		p.close(ctx)
		return nil, err
	}
	return p, nil
}

func newEngine(cfg *config.Config, log *slog.Logger) (*plugin.Engine, error) {
	return plugin.NewEngine(plugin.Options{
		InstanceBytes: int64(cfg.Run.InstanceMiB) << 20, Logger: log, HostVersion: Version(),
	})
}

func (p *plugins) load(ctx context.Context, cfg *config.Config) error {
	errs := make([]error, len(cfg.Plugins))
	var g errgroup.Group
	for i := range cfg.Plugins {
		g.Go(func() error {
			pl, err := p.engine.Load(ctx, p.spec(&cfg.Plugins[i], nil))
			p.all[i], errs[i] = pl, at(cfg, "plugin."+cfg.Plugins[i].Name+".source", err)
			return nil
		})
	}
	_ = g.Wait() // errors are collected by place
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var wrong []error
	var err error
	p.tasks, err = p.role(cfg.Tasks.Plugin, abi.ProvidesTask)
	wrong = append(wrong, at(cfg, "tasks.plugin", err))
	if cfg.Rollout.Plugin != "" {
		p.driver, err = p.role(cfg.Rollout.Plugin, abi.ProvidesRollout)
		wrong = append(wrong, at(cfg, "rollout.plugin", err))
	}
	for i := range cfg.Score {
		wrong = append(wrong, at(cfg, fmt.Sprintf("score.%d.plugin", i), p.addScorers(ctx, cfg, &cfg.Score[i])))
	}
	return errors.Join(wrong...)
}

// at says where in the eval file an error belongs.
func at(cfg *config.Config, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", cfg.Origin(key), err)
}

// spec is a [[plugin]] in host/plugin's words; options win over its own.
func (p *plugins) spec(c *config.Plugin, options map[string]any) plugin.Spec {
	spec := plugin.Spec{
		Alias: c.Name, Source: c.Source, Options: c.Options, Mask: p.mask,
		Grants: grants(c),
		Limits: plugin.Limits{MemoryMiB: c.Limits.MemoryMiB, Fuel: c.Limits.Fuel},
	}
	if len(options) > 0 {
		spec.Options = maps.Clone(c.Options)
		if spec.Options == nil {
			spec.Options = map[string]any{}
		}
		maps.Copy(spec.Options, options)
	}
	return spec
}

func grants(c *config.Plugin) plugin.Grants {
	g := plugin.Grants{
		FS: c.Grant.FS, Vars: c.Grant.Vars, Clock: c.Grant.Clock, Random: c.Grant.Random, TaskEnv: c.Grant.TaskEnv,
	}
	if c.Grant.Env != nil {
		g.Env = &plugin.EnvGrant{Sampling: c.Grant.Env.Sampling}
	}
	return g
}

// role finds a plugin by alias and checks that it can do what the file wants of it.
func (p *plugins) role(alias, role string) (*plugin.Plugin, error) {
	for _, pl := range p.all {
		if pl.Alias() != alias {
			continue
		}
		if !pl.Provides(role) {
			return nil, UsageError{fmt.Errorf("plugin %q does not provide %s, only %v\n  name a plugin that does, or add it to the plugin's manifest and code", alias, role, pl.Manifest().Provides)}
		}
		return pl, nil
	}
	return nil, UsageError{fmt.Errorf("no plugin %q", alias)}
}

// addScorers adds what one [[score]] names: one scorer, or all of the plugin's. Options of its own
// get an instance of their own.
func (p *plugins) addScorers(ctx context.Context, cfg *config.Config, s *config.Score) error {
	i := slices.IndexFunc(p.all, func(pl *plugin.Plugin) bool { return pl.Alias() == s.Plugin })
	if i < 0 {
		return UsageError{fmt.Errorf("no plugin %q", s.Plugin)}
	}
	pl := p.all[i]
	if len(s.Options) > 0 {
		var err error
		if pl, err = p.engine.Load(ctx, p.spec(&cfg.Plugins[i], s.Options)); err != nil {
			return fmt.Errorf("options: %w", err)
		}
		p.extra = append(p.extra, pl)
	}
	var names []string
	for _, sc := range pl.Scorers() {
		names = append(names, sc.Name)
		if s.Scorer != "" && s.Scorer != sc.Name || sc.Kind == plugin.KindDriver && pl.Alias() != cfg.Rollout.Plugin {
			continue
		}
		if p.has(s.Plugin, sc.Name) {
			return UsageError{fmt.Errorf("%s.%s is named twice\n  give the plugin a second [[plugin]] entry under another name", s.Plugin, sc.Name)}
		}
		p.scorers = append(p.scorers, rollout.Scorer{Plugin: pl, Alias: s.Plugin, Name: sc.Name, Kind: sc.Kind, View: sc.Views()})
	}
	if s.Scorer != "" && !slices.Contains(names, s.Scorer) {
		return UsageError{fmt.Errorf("plugin %q has no scorer %q\n  it has: %s", s.Plugin, s.Scorer, strings.Join(names, ", "))}
	}
	return nil
}

func (p *plugins) has(alias, scorer string) bool {
	return slices.ContainsFunc(p.scorers, func(s rollout.Scorer) bool { return s.Alias == alias && s.Name == scorer })
}

// scorer gives what the manifest says of a scorer.
func scorerInfo(s *rollout.Scorer) plugin.Scorer {
	for _, sc := range s.Plugin.Scorers() {
		if sc.Name == s.Name {
			return sc
		}
	}
	return plugin.Scorer{Name: s.Name, Kind: s.Kind}
}

func (p *plugins) identities() []journal.PluginIdentity {
	out := make([]journal.PluginIdentity, len(p.all))
	for i, pl := range p.all {
		m := pl.Manifest()
		out[i] = journal.PluginIdentity{
			Alias: pl.Alias(), Plugin: m.Name, Version: m.Version, SHA256: pl.SHA256(), ABI: pl.ABI(),
			Grants: pl.GrantsDigest(), OptionsDigest: pl.OptionsDigest(),
		}
	}
	return out
}

func (p *plugins) close(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, pl := range append(p.extra, p.all...) {
		if pl != nil {
			_ = pl.Close(ctx)
		}
	}
	_ = p.engine.Close(ctx)
}
