package procwatch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stat is what /proc/PID/stat says (proc_pid_stat(5)).
type stat struct {
	pid, ppid, pgrp, session int
	threads                  int
	state                    byte
	start                    uint64             // ticks since boot; with pid it names a process for good
	status                   syscall.WaitStatus // of a zombie; 0 also when we may not know
}

// ended is more than a zombie: while other threads run, the state of a process whose main thread has
// ended reads Z, too.
func (s stat) ended() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

// processes returns what is in /proc; a process that ends meanwhile is left out.
func processes() map[int]stat {
	names, err := readDirNames("/proc")
	if err != nil {
		return nil
	}
	all := make(map[int]stat, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if s, ok := readStat(pid); ok {
				all[pid] = s
			}
		}
	}
	return all
}

func readStat(pid int) (stat, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	// The name is in parentheses and may hold anything, so count from the last one.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 50 {
		return stat{}, false
	}
	s := stat{pid: pid, state: f[0][0]}
	s.ppid, _ = strconv.Atoi(f[1])
	s.pgrp, _ = strconv.Atoi(f[2])
	s.session, _ = strconv.Atoi(f[3])
	s.threads, _ = strconv.Atoi(f[17])
	status, _ := strconv.ParseUint(f[len(f)-1], 10, 32)
	s.status = syscall.WaitStatus(status)
	s.start, err = strconv.ParseUint(f[19], 10, 64)
	return s, err == nil
}

// descendants returns those of all that descend from root, without root.
func descendants(all map[int]stat, root int) []stat {
	var out []stat
	for _, s := range all {
		for p, hops := s.ppid, 0; p > 0 && hops < len(all); p, hops = all[p].ppid, hops+1 {
			if p == root {
				out = append(out, s)
				break
			}
		}
	}
	return out
}

// sessionTree returns the leader, its session, and what descends from it now.
func sessionTree(leader int) []stat {
	all := processes()
	out := descendants(all, leader)
	seen := map[int]bool{}
	for _, s := range out {
		seen[s.pid] = true
	}
	for _, s := range all {
		if s.session == leader && !seen[s.pid] {
			out = append(out, s)
		}
	}
	return out
}

// checkPidfd says why processes have to be signalled by number.
func checkPidfd() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return os.NewSyscallError("pidfd_open", err)
	}
	_ = unix.Close(fd)
	return nil
}

// send signals the very process that s described, if it is still there.
func send(s stat, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(s.pid, 0)
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
	} else if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return
	}
	if now, ok := readStat(s.pid); !ok || now.start != s.start {
		return
	}
	if err == nil {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		return
	}
	_ = unix.Kill(s.pid, sig) // before Linux 5.3: the window between the check and here is left open
}

// sweep kills what members names, again and again, until nothing of it lives or limit has passed,
// and returns all that it met. all, when given, kills more of it in one step. Two empty looks in a row are needed: during one a process may fork
// behind the reader and end before it.
func sweep(members func() []stat, all func(), limit time.Duration) []Process {
	var met []Process
	seen := map[uint64]map[int]bool{}
	deadline := time.Now().Add(limit)
	for empty := 0; empty < 2; {
		alive := 0
		for _, s := range members() {
			if s.ended() {
				continue
			}
			alive++
			if !seen[s.start][s.pid] {
				if seen[s.start] == nil {
					seen[s.start] = map[int]bool{}
				}
				seen[s.start][s.pid] = true
				if len(met) < maxProcesses {
					met = append(met, Process{PID: s.pid, Argv: argvOf(s.pid)})
				}
			}
			send(s, syscall.SIGKILL)
		}
		if all != nil {
			all()
		}
		if alive == 0 {
			empty++
			continue
		}
		empty = 0
		if time.Now().After(deadline) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return met
}

// argvOf returns the arguments of pid, at most 4 KiB of them; those of a kernel thread or a zombie
// are its name in brackets.
func argvOf(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(b) == 0 {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return []string{"[" + strings.TrimSpace(string(name)) + "]"}
	}
	b = bytes.TrimSuffix(b[:min(len(b), 4096)], []byte{0})
	return strings.Split(string(b), "\x00")
}

// stateOf returns the state letter of pid and its name, such as "D (disk sleep)".
func stateOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if state, ok := strings.CutPrefix(line, "State:"); ok {
			return strings.TrimSpace(state)
		}
	}
	return "unknown"
}

// pipeHolders names the processes other than us that hold the other end of a pipe.
func pipeHolders(pipes []*os.File) []Process {
	inodes := map[string]bool{}
	for _, p := range pipes {
		if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fdOf(p))); err == nil {
			inodes[name] = true
		}
	}
	var out []Process
	for pid := range processes() {
		if pid != os.Getpid() && len(out) < maxProcesses && holdsAny(pid, inodes) {
			out = append(out, Process{PID: pid, Argv: argvOf(pid)})
		}
	}
	return out
}

func holdsAny(pid int, inodes map[string]bool) bool {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	names, err := readDirNames(dir)
	if err != nil {
		return false
	}
	for _, fd := range names {
		if name, err := os.Readlink(dir + fd); err == nil && inodes[name] {
			return true
		}
	}
	return false
}

// fdOf returns the number of f without making it blocking, as Fd would.
func fdOf(f *os.File) (fd uintptr) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(n uintptr) { fd = n })
	}
	return fd
}
