package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/wevalr/wevalr/host"
)

func (a *app) pluginCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "plugin", Short: "Make, build, check and test plugins, and pin those of an eval file",
		Args: usage(cobra.NoArgs), // looked at only where there is something to run
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		a.pluginNewCmd(), a.pluginBuildCmd(), a.pluginCheckCmd(), a.pluginInspectCmd(),
		a.pluginTestCmd(), a.pluginLockCmd(),
	)
	return c
}

func (a *app) pluginNewCmd() *cobra.Command {
	var s host.PluginNewOptions
	c := &cobra.Command{
		Use: "new NAME", Short: "Make a plugin that builds, passes its test and can be run",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			s.Name = args[0]
			return a.host.PluginNew(s, a.json)
		},
	}
	c.Flags().StringVar(&s.Lang, "lang", "go", "language: go, script, c, rust, assemblyscript")
	c.Flags().StringVar(&s.Kind, "kind", "scorer", "what it does: scorer, task, rollout")
	c.Flags().StringVar(&s.Dir, "dir", "", "folder to make it in (default NAME)")
	a.jsonFlag(c)
	return c
}

func (a *app) pluginBuildCmd() *cobra.Command {
	var s host.PluginBuildOptions
	c := &cobra.Command{
		Use: "build [DIR]", Short: "Build a plugin's folder into one .wasm file, manifest and assets in it",
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			s.Dir = folder(args)
			return a.ended(a.host.PluginBuild(c.Context(), s, a.json))
		},
	}
	c.Flags().StringVarP(&s.Output, "output", "o", "", "file to write (default DIR/NAME.wasm)")
	c.Flags().BoolVar(&s.Verify, "verify", false, "build once more and compare, with the file where it is there already")
	a.jsonFlag(c)
	return c
}

func (a *app) pluginCheckCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "check FILE", Short: "Say what is wrong with a module; nothing of it runs",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.ended(a.host.PluginCheck(args[0], a.json))
		},
	}
	a.jsonFlag(c)
	return c
}

func (a *app) pluginInspectCmd() *cobra.Command {
	var config string
	c := &cobra.Command{
		Use: "inspect FILE", Short: "Say what a module (or folder) is and asks for; nothing of it runs",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return a.host.PluginInspect(c.Context(), args[0], config, a.json)
		},
	}
	c.Flags().StringVar(&config, "config", "", "eval file: say what it grants, too")
	a.jsonFlag(c)
	return c
}

func (a *app) pluginTestCmd() *cobra.Command {
	var s host.PluginTestOptions
	var conformance string
	c := &cobra.Command{
		Use: "test [DIR]", Short: "Run a plugin's cases and the built-in ones, natively and as wasm",
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if conformance != "" {
				if len(args) > 0 {
					return host.UsageError{Err: errors.New("plugin test: either DIR or --conformance FILE")}
				}
				return a.ended(a.host.PluginConform(c.Context(), conformance, a.json))
			}
			s.Dir = folder(args)
			return a.ended(a.host.PluginTest(c.Context(), s, a.json))
		},
	}
	c.Flags().StringVar(&conformance, "conformance", "", "hold this module, of any language, against the rules of the ABI, and run the hostile kit beside it")
	c.Flags().BoolVar(&s.Update, "update", false, "write what came out into the case files")
	c.Flags().BoolVar(&s.WasmOnly, "wasm-only", false, "leave out go test, which executes the folder's code outside of the sandbox")
	a.jsonFlag(c)
	return c
}

func (a *app) pluginLockCmd() *cobra.Command {
	var accept bool
	c := &cobra.Command{
		Use: "lock [EVAL.toml]", Short: "Pin the plugins of an eval file in the wevalr.lock beside it",
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			eval := "eval.toml"
			if len(args) > 0 {
				eval = args[0]
			}
			return a.ended(a.host.PluginLock(c.Context(), eval, accept, a.json))
		},
	}
	c.Flags().BoolVar(&accept, "accept", false, "also where a plugin asks for more than was locked")
	a.jsonFlag(c)
	return c
}

// folder is the first argument, or the current folder.
func folder(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "."
}
