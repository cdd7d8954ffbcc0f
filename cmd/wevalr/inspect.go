package main

import (
	"github.com/spf13/cobra"

	"github.com/wevalr/wevalr/host"
)

func (a *app) showCmd() *cobra.Command {
	var opt host.ShowOptions
	c := &cobra.Command{
		Use:   "show RUN [KEY]",
		Short: "Print a run's result, or the messages, scores and timing of a task's rollouts",
		Args:  usage(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			opt.Run, opt.JSON = args[0], a.json
			if len(args) == 2 {
				opt.Key = args[1]
			}
			return a.host.Show(c.Context(), opt)
		},
	}
	c.Flags().StringVarP(&opt.Root, "output", "o", "runs", "folder in which RUN is looked for by its id")
	a.jsonFlag(c)
	return c
}

func (a *app) lsCmd() *cobra.Command {
	var root string
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the runs",
		Args:  usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return a.host.List(root, a.json)
		},
	}
	c.Flags().StringVarP(&root, "output", "o", "runs", "folder of the run directories")
	a.jsonFlag(c)
	return c
}

func (a *app) configCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Check an eval file, or print it as resolved",
		Args: usage(cobra.NoArgs), // looked at only where there is something to run
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	verb := func(use, short string, print bool) *cobra.Command {
		var f overrideFlags
		v := &cobra.Command{
			Use: use, Short: short, Args: usage(cobra.ExactArgs(1)),
			RunE: func(c *cobra.Command, args []string) error {
				return a.host.Config(args[0], f.overrides(c), print, a.json)
			},
		}
		f.register(v)
		a.jsonFlag(v)
		return v
	}
	c.AddCommand(
		verb("check EVAL.toml", "Say everything that is wrong with an eval file", false),
		verb("print EVAL.toml", "Print the eval file as resolved, and where each value came from", true),
	)
	return c
}

func (a *app) versionCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print wevalr's version and what it speaks",
		Args:  usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return a.host.PrintVersion(a.json)
		},
	}
	a.jsonFlag(c)
	return c
}
