package main

import (
	"github.com/spf13/cobra"

	"github.com/wevalr/wevalr/host"
)

// overrideFlags are the flags that stand for keys of the eval file. A flag wins over the file.
type overrideFlags struct {
	tasks, rollouts, concurrent int
	seed                        int64
	model, task                 string
	set                         []string
}

func (f *overrideFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.IntVarP(&f.tasks, "num-tasks", "n", 0, "tasks.num_tasks")
	fl.IntVarP(&f.rollouts, "num-rollouts", "r", 0, "tasks.num_rollouts")
	fl.IntVarP(&f.concurrent, "max-concurrent", "c", 0, "run.max_concurrent")
	fl.StringVarP(&f.model, "model", "m", "", "model.name")
	fl.Int64Var(&f.seed, "seed", 0, "tasks.seed")
	fl.StringVar(&f.task, "task", "", "tasks.select: only tasks whose key matches this glob")
	fl.StringArrayVar(&f.set, "set", nil, "any key of the eval file: a.b=<TOML value> (repeatable)")
}

// overrides lists the flags that were given; --set comes last and so wins.
func (f *overrideFlags) overrides(c *cobra.Command) host.Overrides {
	out := host.Overrides{Set: f.set}
	add := func(flag, name string, value any) {
		if c.Flags().Changed(flag) {
			out.Flags = append(out.Flags, host.Flag{Name: name, Value: value})
		}
	}
	add("num-tasks", "-n", f.tasks)
	add("num-rollouts", "-r", f.rollouts)
	add("max-concurrent", "-c", f.concurrent)
	add("model", "-m", f.model)
	add("seed", "--seed", f.seed)
	add("task", "--task", f.task)
	return out
}
