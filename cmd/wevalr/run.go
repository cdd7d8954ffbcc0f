package main

import (
	"github.com/spf13/cobra"

	"github.com/wevalr/wevalr/host"
)

func (a *app) runCmd() *cobra.Command {
	var opt host.RunOptions
	var f overrideFlags
	c := &cobra.Command{
		Use:   "run EVAL.toml",
		Short: "Run an evaluation into a new run directory",
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			opt.Config, opt.Overrides = args[0], f.overrides(c)
			opt.JSON = a.json
			a.listen()
			return a.ended(a.host.Run(c.Context(), opt))
		},
	}
	f.register(c)
	c.Flags().StringVarP(&opt.Root, "output", "o", "runs", "folder for run directories")
	c.Flags().BoolVar(&opt.DryRun, "dry-run", false, "print the plan, the grants and what would be called; run nothing")
	a.display(c, &opt.Display)
	return c
}

func (a *app) resumeCmd() *cobra.Command {
	var opt host.ResumeOptions
	var f overrideFlags
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run: what is owed is run, what is finished is kept",
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			opt.Run, opt.Overrides, opt.JSON = args[0], f.overrides(c), a.json
			a.listen()
			return a.ended(a.host.Resume(c.Context(), opt))
		},
	}
	f.register(c)
	a.runFlags(c, &opt)
	return c
}

func (a *app) retryCmd() *cobra.Command {
	var opt host.ResumeOptions
	var f overrideFlags
	c := &cobra.Command{
		Use:   "retry RUN",
		Short: "Run again only the rollouts of a run that ended in error",
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			opt.Run, opt.Overrides, opt.JSON, opt.ErrorsOnly = args[0], f.overrides(c), a.json, true
			a.listen()
			return a.ended(a.host.Resume(c.Context(), opt))
		},
	}
	f.register(c)
	a.runFlags(c, &opt)
	c.Flags().StringArrayVar(&opt.Kinds, "kind", nil, "only failures of this kind (repeatable)")
	return c
}

// runFlags are those of the verbs that take a RUN and go on with it.
func (a *app) runFlags(c *cobra.Command, opt *host.ResumeOptions) {
	c.Flags().StringVarP(&opt.Root, "output", "o", "runs", "folder in which RUN is looked for by its id")
	a.display(c, &opt.Display)
}

func (a *app) display(c *cobra.Command, mode *string) {
	c.Flags().StringVar(mode, "display", "auto", "progress on stderr: auto, plain, json or none")
	a.jsonFlag(c)
}

func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print the result as one JSON object on stdout")
}
