package host_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/wevalr/wevalr/host"
)

// TestMain lets the test binary be what the wevalr binary is: the embedded env-server's and the
// warden's process.
func TestMain(m *testing.M) {
	host.Reexec()
	if len(os.Args) > 5 && os.Args[1] == "serve" {
		err := host.New(os.Stdout, os.Stderr, nil, os.Exit).Serve(context.Background(), host.ServeOptions{Address: os.Args[3], Config: os.Args[5]})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(host.ExitCode(err))
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
