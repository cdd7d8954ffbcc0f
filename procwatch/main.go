package procwatch

import (
	"os"
	"sync/atomic"
	"syscall"
)

// wardenName is the argv[0] under which our own binary is a warden.
const wardenName = "procwatch-warden"

// hooked says that this binary calls Main: executing it under wardenName then gives a warden and
// not a second run of the program.
var hooked atomic.Bool //nolint:gochecknoglobals // a fact about the binary, set once by its main

// Main makes the levels [Warden] and [Cgroup] available. It is called first in main and in TestMain and returns
// at once, unless this process was started to be a warden: then it does not return.
func Main() {
	hooked.Store(true)
	if len(os.Args) > 0 && os.Args[0] == wardenName {
		syscall.Exit(wardenMain()) // at once: somebody waits for it
	}
}
