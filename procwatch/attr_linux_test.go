package procwatch

import (
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
func openFDs() []int {
	names, _ := readDirNames("/proc/self/fd")
	var fds []int
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil {
			fds = append(fds, fd)
		}
	}
	return fds
}
