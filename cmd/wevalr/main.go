// Command wevalr runs LLM and agent evaluations described by TOML files. See the README.
//
// This package is the command line only: one file a verb, flags → host → exit code.
package main

import (
	"os"

	"github.com/wevalr/wevalr/host"
)

func main() {
	host.Reexec() // returns at once unless this process was started as a warden
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr, os.Exit))
}
