package procwatch

import (
	"os"
	"strconv"
	"syscall"
)

func sysProcAttr(kind string) *syscall.SysProcAttr {
	switch kind {
	case "setsid", "closed":
		return &syscall.SysProcAttr{Setsid: true}
	case "setpgid":
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{}
}

// openFDs returns our descriptors; some are the runtime's own.
func openFDs() (fds []int) {
	entries, _ := os.ReadDir("/dev/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			fds = append(fds, fd)
		}
	}
	return fds
}
