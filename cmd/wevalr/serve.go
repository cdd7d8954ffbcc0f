package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/wevalr/wevalr/host"
)

func (a *app) serveCmd() *cobra.Command {
	var opt host.ServeOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Be an env-server: single-turn chat against a model, or the offline models",
		Args:  usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if opt.Address == "" {
				return host.UsageError{Err: errors.New("serve: --address is missing; see 'wevalr serve --help'")}
			}
			a.listen()
			return a.host.Serve(c.Context(), opt)
		},
	}
	c.Flags().StringVar(&opt.Address, "address", "", "endpoint to listen on: ipc://PATH or tcp://HOST:PORT (required)")
	c.Flags().StringVar(&opt.Config, "config", "", "TOML file with [model] as in an eval file; without it any client is taken, over ipc only")
	c.Flags().BoolVar(&opt.AllowTCP, "allow-tcp", false, "listen on tcp: whoever reaches the port can use the model")
	return c
}
