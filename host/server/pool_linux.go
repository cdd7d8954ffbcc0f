package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// seesWorkers: this system shows a process's children, and how a zombie ended.
const seesWorkers = true

// mayBePool tells whether a process is one that could have workers: an interpreter of Python, or a script
// that names one in its first line, whose process has the script's name.
func mayBePool(pid int) bool {
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	for _, name := range []string{string(comm), filepath.Base(exe)} {
		if strings.Contains(name, "python") || strings.Contains(name, "pypy") {
			return true
		}
	}
	return false
}
