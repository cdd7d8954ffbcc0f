package main

import (
	"github.com/spf13/cobra"

	"github.com/wevalr/wevalr/host"
)

func (a *app) rescoreCmd() *cobra.Command {
	var opt host.RescoreOptions
	c := &cobra.Command{
		Use:   "rescore RUN",
		Short: "Score a run's finished episodes again: with another plugin, or to verify its scores",
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			opt.Run, opt.JSON = args[0], a.json
			return a.ended(a.host.Rescore(c.Context(), opt))
		},
	}
	fl := c.Flags()
	fl.StringVarP(&opt.Root, "output", "o", "runs", "folder in which RUN is looked for by its id")
	fl.StringVar(&opt.Plugin, "plugin", "", "a .wasm file, a source folder, or the alias of a plugin of the run")
	fl.StringVar(&opt.Scorer, "scorer", "", "one scorer of the plugin; all without it")
	fl.StringArrayVar(&opt.Options, "option", nil, "an option of the plugin: KEY=<TOML value> (repeatable)")
	fl.StringToStringVar(&opt.Grants, "grant-fs", nil, "a folder that the plugin may read: NAME=DIR (repeatable)")
	fl.BoolVar(&opt.Verify, "verify", false, "score again with the run's own scorers and compare bit for bit; exit code 1 where anything differs")
	a.jsonFlag(c)
	return c
}
