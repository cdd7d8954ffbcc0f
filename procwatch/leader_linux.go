package procwatch

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxRSSUnit is what getrusage(2) counts in.
const maxRSSUnit = 1024

func leaderAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// waitDead returns when pid, a child of ours, has ended, and how; it stays a zombie, and so its number
// cannot be given to another process yet. That is why no pidfd is needed here.
func waitDead(pid int) (status syscall.WaitStatus, known bool) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			status, known = statusOf(&info)
			return status, known && err == nil
		}
	}
}

// statusOf reads a SIGCHLD's siginfo_t as wait(2) would have given it. x/sys leaves si_status unnamed: it
// is the int at byte 24 of the kernel's struct on 64-bit machines (sigaction(2), CLD_ codes).
func statusOf(info *unix.Siginfo) (syscall.WaitStatus, bool) {
	const exited, killed, dumped = 1, 2, 3 // CLD_
	status := syscall.WaitStatus((*[32]int32)(unsafe.Pointer(info))[6])
	switch info.Code {
	case exited:
		return status & 0xff << 8, true
	case killed:
		return status & 0x7f, true
	case dumped:
		return status&0x7f | 0x80, true
	}
	return 0, false
}

// isDead reports whether pid, a child of ours that is not reaped, has ended.
func isDead(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// highestInheritable returns the highest descriptor that a child of ours would inherit, 2 at least.
// One at the very limit is left out: os.StartProcess needs room above those that it closes.
func highestInheritable() int {
	highest := 2
	var limit unix.Rlimit
	names, err := readDirNames("/proc/self/fd")
	if err != nil || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return highest
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= highest || uint64(fd)+16 > limit.Cur {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			highest = fd
		}
	}
	return highest
}

func readDirNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}
