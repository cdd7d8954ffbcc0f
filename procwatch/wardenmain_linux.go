package procwatch

import (
	"encoding/gob"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// opLevel marks a report that the warden cannot do its work.
const opLevel = "level"

// keeper is the warden seen from inside: a process of its own that does nothing else. What descends
// from it cannot leave it, since orphans become its children (PR_SET_CHILD_SUBREAPER).
type keeper struct {
	conn   *os.File
	out    *gob.Encoder
	cmd    command
	cgroup cgroup
	leader *leader

	requests chan request // closed when the host is gone
}

func wardenMain() int {
	syscall.CloseOnExec(3)
	k := &keeper{conn: os.NewFile(3, "host"), requests: make(chan request)}
	k.out = gob.NewEncoder(k.conn)
	// Caught and dropped, not ignored: an ignored signal would stay ignored in the child.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	in := gob.NewDecoder(k.conn)
	if err := in.Decode(&k.cmd); err != nil {
		return 1
	}
	k.cgroup = cgroup(k.cmd.Cgroup)
	defer func() { // whatever happened, and again after the last of it is reaped
		k.cgroup.kill()
		k.cgroup.remove(sweepLimit)
	}()
	if err := k.start(); err != nil {
		return 1
	}
	go k.receive(in)
	go k.reapOrphans()
	k.watch()
	if k.cmd.TempDir != "" { // the host does it too, if it lives that long
		_ = os.RemoveAll(k.cmd.TempDir)
	}
	return 0
}

// start executes the command and gives up our copies of its pipes.
func (k *keeper) start() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		_ = k.out.Encode(report{Op: opLevel, Level: Warden, Why: err.Error()})
		return err
	}
	attr := leaderAttr()
	if k.cgroup != "" {
		group, err := k.enter(attr)
		if err != nil {
			_ = k.out.Encode(report{Op: opLevel, Level: Cgroup, Why: err.Error()})
			return err
		}
		defer group.Close()
	}
	stdio := []*os.File{null, os.Stdout, os.Stderr}
	if k.cmd.NotifyFD > 0 {
		notify := os.NewFile(4, "notify")
		defer notify.Close()
		stdio = append(stdio, notify)
	}
	k.leader, err = launch(k.cmd, stdio, attr)
	if err != nil {
		op := "fork/exec"
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			op = pe.Op
		}
		_ = k.out.Encode(report{Op: op, Errno: errnoOf(err)})
		return err
	}
	for fd := 1; fd <= 2; fd++ {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err // our end kills the leader
		}
	}
	_ = k.out.Encode(report{Started: k.leader.pid})
	return nil
}

// enter makes the control group, and lets attr start a child within it. The file stays open for that.
func (k *keeper) enter(attr *syscall.SysProcAttr) (*os.File, error) {
	if err := k.cgroup.make(); err != nil {
		return nil, err
	}
	f, err := os.Open(string(k.cgroup))
	if err == nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(f.Fd())
	}
	return f, err
}

func errnoOf(err error) syscall.Errno {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return syscall.EINVAL
	}
	return no
}

func (k *keeper) receive(in *gob.Decoder) {
	defer close(k.requests)
	for {
		var r request
		if in.Decode(&r) != nil {
			return
		}
		k.requests <- r
	}
}

// watch returns when nothing is left to watch.
func (k *keeper) watch() {
	for {
		select {
		case <-k.leader.dead:
			k.bury()
			return
		case r, ok := <-k.requests:
			if !ok {
				k.outlive()
				return
			}
			k.signal(r.Signal)
		}
	}
}

// bury reports the leader's death, kills the rest, and reaps the leader when the host says so.
func (k *keeper) bury() {
	_ = k.out.Encode(report{Dead: true, Known: k.leader.known, Status: uint32(k.leader.last)})
	_ = k.out.Encode(report{Swept: true, Survivors: sweep(k.tree, k.cgroup.kill, sweepLimit)})
	told := false
	for r := range k.requests {
		if told = r.Reap; told {
			break
		}
	}
	d := k.leader.bury()
	k.clear(sweepLimit)
	if d.known && told {
		_ = k.out.Encode(report{Reaped: true, Usage: d.usage})
	}
}

// outlive ends the tree as Stop would have: the host is gone.
func (k *keeper) outlive() {
	k.signal(syscall.SIGTERM)
	k.signal(syscall.SIGCONT)
	select {
	case <-k.leader.dead:
	case <-time.After(k.cmd.Grace):
	}
	sweep(k.tree, k.cgroup.kill, time.Minute)
	k.leader.bury()
	k.clear(time.Minute)
}

func (k *keeper) signal(sig syscall.Signal) {
	for _, s := range k.tree() {
		if !s.ended() {
			send(s, sig)
		}
	}
}

func (k *keeper) tree() []stat { return k.cgroup.members(descendants(processes(), os.Getpid())) }

// reapOrphans reaps what ends as our child while the leader lives; the leader itself is left alone.
func (k *keeper) reapOrphans() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	for range ended {
		for _, s := range processes() {
			if s.ppid == os.Getpid() && s.ended() && s.pid != k.leader.pid {
				_, _ = unix.Wait4(s.pid, nil, unix.WNOHANG, nil) //nolint:forbidigo // the warden is a process of its own
			}
		}
	}
}

// clear reaps what is left once the leader is reaped, and kills until there is no child at all: no
// reading of /proc is as certain as that.
func (k *keeper) clear(limit time.Duration) {
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil) //nolint:forbidigo // as above: nobody else waits here
		switch {
		case errors.Is(err, unix.ECHILD):
			return
		case err == nil && pid == 0:
			sweep(k.tree, k.cgroup.kill, time.Until(deadline))
		}
	}
}
