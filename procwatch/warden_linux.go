package procwatch

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// request goes to the warden after the command, in gob since arguments may be any bytes. The end of
// the stream says that we died.
type request struct {
	Signal syscall.Signal // to the tree
	Reap   bool           // the leader's number is no longer needed
}

// report comes from the warden: one with Started or Errno, then Dead, Swept and Reaped.
type report struct {
	Started   int    // the leader's pid
	Op        string // what gave Errno, or opLevel
	Errno     syscall.Errno
	Level     Containment // of opLevel: what cannot be had, and why
	Why       string
	Dead      bool
	Known     bool   // of Dead: Status is
	Status    uint32 // of Dead: as wait(2) gives it
	Swept     bool
	Survivors []Process
	Reaped    bool
	Usage     Usage
}

// warden is the level Warden as we see it: the leader is its child, and a socket tells each of us
// of the other's death.
type warden struct {
	proc   *os.Process
	conn   *os.File
	in     *gob.Decoder // await, then bury
	cgroup cgroup
	leader int
	pidfd  int   // the leader's; the warden reaps it only when told to, so the number was right
	end    death // what was known at the leader's death, from await to bury

	mu     sync.Mutex
	out    *gob.Encoder
	buried bool
}

// startWarden starts c at the level Warden or Cgroup.
func startWarden(ctx context.Context, level Containment, c command, stdio []*os.File) (body, int, error) {
	if !hooked.Load() {
		return nil, 0, &levelError{level, errors.New("this program does not call procwatch.Main")}
	}
	var group cgroup
	if level == Cgroup {
		var err error
		if group, err = nameCgroup(); err != nil {
			return nil, 0, &levelError{level, err}
		}
		c.Cgroup = string(group)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(fds[0], true)
	conn, theirs := os.NewFile(uintptr(fds[0]), "warden"), os.NewFile(uintptr(fds[1]), "warden")
	defer theirs.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		_ = conn.Close()
		return nil, 0, err
	}
	defer null.Close()
	proc, err := startProcess(
		command{Path: "/proc/self/exe", Argv: append([]string{wardenName}, c.Argv...), Dir: "/", Env: []string{}},
		slices.Concat([]*os.File{null, stdio[1], stdio[2], theirs}, stdio[3:]), &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		_ = conn.Close()
		return nil, 0, &levelError{level, err}
	}
	w := &warden{cgroup: group, pidfd: -1, proc: proc, conn: conn, in: gob.NewDecoder(conn), out: gob.NewEncoder(conn)}
	if err := w.handshake(ctx, level, c); err != nil {
		w.abort()
		return nil, 0, err
	}
	return w, w.leader, nil
}

// handshake hands over the command and waits for the leader's number.
func (w *warden) handshake(ctx context.Context, level Containment, c command) error {
	stop := context.AfterFunc(ctx, func() { _ = w.conn.SetDeadline(time.Now()) })
	var r report
	err := w.out.Encode(c)
	if err == nil {
		err = w.in.Decode(&r)
	}
	switch {
	case !stop(): // too late for a success: the deadline is set
		return context.Cause(ctx)
	case err != nil:
		return &levelError{level, fmt.Errorf("the warden has ended: %w", err)}
	case r.Op == opLevel:
		return &levelError{r.Level, errors.New(r.Why)}
	case r.Started == 0:
		return &os.PathError{Op: r.Op, Path: c.Path, Err: r.Errno}
	}
	w.leader = r.Started
	if w.pidfd, err = unix.PidfdOpen(w.leader, 0); err != nil {
		w.pidfd = -1
	}
	return nil
}

// abort leaves nothing of a start that did not succeed.
func (w *warden) abort() {
	_ = w.conn.SetDeadline(time.Now().Add(sweepLimit))
	_ = w.out.Encode(request{Signal: syscall.SIGKILL})
	w.close()
	w.cgroup.kill()
	w.cgroup.remove(sweepLimit)
}

// close ends the warden by closing our end of the socket, and by force when that takes too long.
func (w *warden) close() {
	_ = w.conn.Close()
	t := time.AfterFunc(2*sweepLimit, func() { _ = w.proc.Kill() })
	defer t.Stop()
	_, _ = w.proc.Wait()
}

func (w *warden) await() bool {
	var r report
	if w.in.Decode(&r) != nil || !r.Dead {
		return false
	}
	w.end = death{status: syscall.WaitStatus(r.Status), known: r.Known}
	return true
}

func (w *warden) signal(sig syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.buried {
		return
	}
	_ = w.conn.SetWriteDeadline(time.Now().Add(sweepLimit))
	_ = w.out.Encode(request{Signal: sig})
	if sig == syscall.SIGKILL && w.pidfd >= 0 {
		_ = unix.PidfdSendSignal(w.pidfd, sig, nil, 0) // also when the warden hangs
	}
}

func (w *warden) dead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buried || w.pidfd >= 0 && readable(w.pidfd, 0)
}

// readable reports whether the process of a pidfd has ended (pidfd_open(2)), after limit at most.
func readable(pidfd int, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for {
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(0, time.Until(deadline).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

func (w *warden) bury() death {
	d := w.end
	t := time.AfterFunc(sweepLimit+100*time.Millisecond, func() { _ = w.proc.Kill() })
	defer t.Stop()
	var swept, reaped report
	if w.in.Decode(&swept) == nil && swept.Swept {
		_ = w.conn.SetWriteDeadline(time.Now().Add(sweepLimit))
		w.mu.Lock()
		w.buried = true
		_ = w.out.Encode(request{Reap: true})
		w.mu.Unlock()
		if w.in.Decode(&reaped) == nil && reaped.Reaped {
			d.usage = reaped.Usage
		}
	}
	d.survivors = swept.Survivors
	if !swept.Swept {
		d.survivors = w.avenge()
	}
	w.close()
	w.cgroup.remove(sweepLimit / 4) // of a warden that could not
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buried = true
	if w.pidfd >= 0 {
		_ = unix.Close(w.pidfd)
		w.pidfd = -1
	}
	return d
}

// avenge does what is left to do when the warden is gone: its death killed the leader. What the
// leader's session still holds is told by its age from a later session of the same number; what its
// control group holds is the leader's for certain.
func (w *warden) avenge() []Process {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	latest := uint64(now.Sec)*100 + uint64(now.Nsec)/1e7 // USER_HZ is 100 in every ABI of ours
	_ = w.proc.Kill()
	if w.pidfd >= 0 {
		_ = unix.PidfdSendSignal(w.pidfd, syscall.SIGKILL, nil, 0)
		readable(w.pidfd, sweepLimit/2)
	}
	return sweep(func() []stat {
		var old []stat
		for _, s := range processes() {
			if s.session == w.leader && s.start <= latest {
				old = append(old, s)
			}
		}
		return w.cgroup.members(old)
	}, w.cgroup.kill, sweepLimit/2)
}
