package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/host/author"
	"github.com/wevalr/wevalr/host/config"
	"github.com/wevalr/wevalr/host/plugin"
)

// What the verbs of `wevalr plugin` take.
type (
	// PluginNewOptions are those of `plugin new`.
	PluginNewOptions = author.NewSpec
	// PluginBuildOptions are those of `plugin build`.
	PluginBuildOptions = author.BuildSpec
	// PluginTestOptions are those of `plugin test`.
	PluginTestOptions = author.TestSpec
)

// pluginResult is what a verb of `wevalr plugin` gives.
type pluginResult interface{ Text(w io.Writer) error }

// show prints v as one JSON object or for a person.
func (h *Host) show(v pluginResult, asJSON bool) error {
	if !asJSON {
		return v.Text(h.Stdout)
	}
	enc := json.NewEncoder(h.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// asked turns what a person cannot have into a usage error.
func asked(err error) error {
	if _, ok := errors.AsType[*author.RequestError](err); ok {
		return UsageError{err}
	}
	return err
}

// PluginNew makes a plugin from a template.
func (h *Host) PluginNew(s PluginNewOptions, asJSON bool) error {
	c, err := author.New(s)
	if err != nil {
		return asked(err)
	}
	return h.show(c, asJSON)
}

// PluginBuild makes a module of a plugin's folder. The exit code is 1 where --verify finds other bytes.
func (h *Host) PluginBuild(ctx context.Context, s PluginBuildOptions, asJSON bool) (int, error) {
	b, err := author.MakeModule(ctx, s)
	if e, ok := errors.AsType[*author.DifferentError](err); ok {
		_, werr := fmt.Fprintln(h.Stderr, e.Error())
		return ExitGate, werr
	}
	if err != nil {
		return 0, asked(err)
	}
	return 0, h.show(b, asJSON)
}

// PluginCheck lists what is wrong with a module; the exit code is 2 where wevalr refuses it.
func (h *Host) PluginCheck(file string, asJSON bool) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, UsageError{err}
	}
	r := author.Check(file, b)
	if r.Refused {
		return ExitUsage, h.show(r, asJSON)
	}
	return 0, h.show(r, asJSON)
}

// PluginInspect says what a module is and asks for; with an eval file also what that grants it. A folder is
// built first. No guest code runs.
func (h *Host) PluginInspect(ctx context.Context, path, eval string, asJSON bool) error {
	b, err := moduleOf(ctx, path)
	if err != nil {
		return err
	}
	d, err := author.Inspect(path, b)
	if err != nil {
		return err
	}
	if eval != "" {
		cfg, err := loadConfig(eval, Overrides{})
		if err != nil {
			return err
		}
		if err := addGrants(d, cfg, path); err != nil {
			return err
		}
	}
	return h.show(d, asJSON)
}

// moduleOf reads a .wasm file or builds a folder.
func moduleOf(ctx context.Context, path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, UsageError{err}
	}
	if !st.IsDir() {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, UsageError{err}
		}
		return b, nil
	}
	built, err := plugin.Build(ctx, path)
	if err != nil {
		return nil, err
	}
	return built.Module, nil
}

// addGrants finds the entries of an eval file that name a plugin, by its place or its name.
func addGrants(d *author.Description, cfg *config.Config, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	var names []string
	for i := range cfg.Plugins {
		c := &cfg.Plugins[i]
		names = append(names, c.Name)
		if c.Source == abs || c.Name == d.Name {
			d.AddGrants(c.Name, grants(c), c.Options)
		}
	}
	if d.Grants == nil {
		return UsageError{fmt.Errorf("--config: no [[plugin]] names %s, there are: %s", path, strings.Join(names, ", "))}
	}
	return nil
}

// PluginTest runs a plugin's cases; the exit code is 1 where one fails.
func (h *Host) PluginTest(ctx context.Context, s PluginTestOptions, asJSON bool) (int, error) {
	return h.tested(author.Test(ctx, s))(asJSON)
}

// PluginConform runs the conformance kit against a module; the exit code is 1 where a check fails.
func (h *Host) PluginConform(ctx context.Context, file string, asJSON bool) (int, error) {
	return h.tested(author.Conform(ctx, file))(asJSON)
}

func (h *Host) tested(t *author.Tested, err error) func(asJSON bool) (int, error) {
	return func(asJSON bool) (int, error) {
		switch {
		case err != nil:
			return 0, asked(err)
		case t.Failed > 0:
			return ExitGate, h.show(t, asJSON)
		}
		return 0, h.show(t, asJSON)
	}
}

// PluginLock writes wevalr.lock beside an eval file. A plugin that asks for more than was locked needs
// accept; without it nothing is written and the exit code is 2.
func (h *Host) PluginLock(ctx context.Context, eval string, accept, asJSON bool) (int, error) {
	cfg, err := loadConfig(eval, Overrides{})
	if err != nil {
		return 0, err
	}
	var sources []author.Source
	for _, c := range cfg.Plugins {
		sources = append(sources, author.Source{Alias: c.Name, Path: c.Source})
	}
	l, err := author.LockPlugins(ctx, author.LockSpec{Eval: eval, Plugins: sources, Accept: accept})
	if err != nil {
		return 0, err
	}
	if !l.Written {
		return ExitUsage, h.show(l, asJSON)
	}
	return 0, h.show(l, asJSON)
}

// checkLock holds the loaded plugins of an eval file against the wevalr.lock beside it, where there is one.
// It writes nothing.
//
// # Errors
//
// *plugin.LockError with every difference and the command that accepts them.
func checkLock(ctx context.Context, eval string, ps *plugins) error {
	file := filepath.Join(filepath.Dir(eval), plugin.LockFile)
	l, err := plugin.ReadLock(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.Check(ctx, file, "wevalr plugin lock "+eval, slices.Concat(ps.all, ps.extra))
}
