package procwatch

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxRSSUnit is what getrusage(2) counts in.
const maxRSSUnit = 1

func leaderAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waitDead returns when pid, a child of ours, has ended; it stays a zombie. How it ended is known when it
// is reaped.
func waitDead(pid int) (status syscall.WaitStatus, known bool) {
	for !exited(pid, nil) {
		time.Sleep(50 * time.Millisecond) // out of descriptors or memory: there is nobody to tell
	}
	return 0, false
}

// isDead reports whether pid, a child of ours that is not reaped, has ended.
func isDead(pid int) bool { return exited(pid, &unix.Timespec{}) }

// exited waits for the end of pid until the timeout; a zombie cannot be watched and has ended.
func exited(pid int, timeout *unix.Timespec) bool {
	kq, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(kq)
	unix.CloseOnExec(kq)
	change := make([]unix.Kevent_t, 1)
	unix.SetKevent(&change[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	events := make([]unix.Kevent_t, 1)
	n, err := unix.Kevent(kq, change, events, timeout)
	return errors.Is(err, unix.ESRCH) || n > 0
}

func highestInheritable() int { return 2 }
