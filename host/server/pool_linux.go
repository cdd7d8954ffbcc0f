package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// seesWorkers: this system shows a process's children, and how a zombie ended.
const seesWorkers = true

// children lists the direct children of a process, zombies included. One that is forked or reaped
// meanwhile may be missed; the next look finds it.
func children(pid int) (out []child) {
	for _, n := range childNumbers(pid) {
		if c, parent, ok := readChild(n); ok && parent == pid {
			out = append(out, c)
		}
	}
	return out
}

// childNumbers asks the kernel for them (proc_tid_children(5)); one that was built without the answer
// makes us look at every process.
func childNumbers(pid int) (out []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	known := false
	for _, task := range tasks {
		b, err := os.ReadFile(filepath.Join(task, "children"))
		if err != nil {
			continue
		}
		known = true
		out = appendNumbers(out, strings.Fields(string(b)))
	}
	if known || len(tasks) == 0 {
		return out
	}
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return appendNumbers(nil, names)
}

func appendNumbers(out []int, names []string) []int {
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// readChild reads /proc/PID/stat; its last field is the wait status (proc_pid_stat(5)).
func readChild(pid int) (c child, parent int, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return c, 0, false
	}
	// The name is in parentheses and may hold anything, so count from the last one.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 50 {
		return c, 0, false
	}
	parent, err1 := strconv.Atoi(f[1])
	start, err := strconv.ParseUint(f[19], 10, 64)
	status, err2 := strconv.ParseUint(f[len(f)-1], 10, 32)
	c = child{processID: processID{pid, start}, zombie: f[0] == "Z", status: syscall.WaitStatus(status)}
	return c, parent, err == nil && err1 == nil && err2 == nil
}

// argvOf is a living process's command line.
func argvOf(pid int) []string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(string(bytes.TrimSuffix(b, []byte{0})), "\x00")
}

// mayBePool tells whether a process is one that could have workers: an interpreter of Python.
func mayBePool(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return bytes.Contains(b, []byte("python")) || bytes.Contains(b, []byte("pypy"))
}
