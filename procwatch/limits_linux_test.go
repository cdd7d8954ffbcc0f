package procwatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runHelper runs a helper that says "ok" when all is well.
func runHelper(t *testing.T, attr *syscall.SysProcAttr, mode string, args ...string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"helper:" + mode}, args...)...)
	cmd.SysProcAttr, cmd.Dir = attr, "/"
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir(), "GOMAXPROCS=2")
	out, err := cmd.CombinedOutput()
	if said := strings.TrimSpace(string(out)); err != nil || !strings.HasSuffix(said, "ok") {
		t.Errorf("%v: %s", err, said)
	}
}

func TestStart_OutOfProcesses(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		attr := &syscall.SysProcAttr{}
		if os.Geteuid() == 0 { // root has no limit: become a user that has no process
			if level == Cgroup {
				t.Skip("another user cannot make groups in ours")
			}
			attr.Credential = &syscall.Credential{Uid: 54321, Gid: 54321, NoSetGroups: true}
		}
		runHelper(t, attr, "noprocs", string(level))
	})
}

// helperNoProcs starts a child where no more processes are allowed. Go itself cannot go on without a
// thread that it needs, so there are some to spare.
func helperNoProcs(args []string) int {
	var threads, here sync.WaitGroup
	gate := make(chan struct{})
	for range 24 {
		here.Add(1)
		threads.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			here.Done()
			<-gate
		})
	}
	here.Wait()
	close(gate)
	threads.Wait()
	spec := Spec{Argv: sh("exit 4"), Containment: Containment(args[0])}
	first, err := Start(context.Background(), spec) // what the runtime opens, it opens now
	if err != nil {
		fmt.Println(err)
		return 1
	}
	<-first.Done()
	var old unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NPROC, &old)
	low := old
	low.Cur = 1
	before := resources()
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &low); err != nil {
		fmt.Println(err)
		return 1
	}
	p, err := Start(context.Background(), spec)
	if err2 := unix.Setrlimit(unix.RLIMIT_NPROC, &old); err2 != nil {
		fmt.Println(err2)
		return 1
	}
	var se *StartError
	if p != nil || !errors.As(err, &se) || !errors.Is(err, syscall.EAGAIN) {
		fmt.Println("got", err)
		return 1
	}
	fmt.Println(err)
	if now := resources(); now.fds > before.fds {
		fmt.Printf("got %+v want %+v\n", now, before)
		return 1
	}
	if p, err = Start(context.Background(), spec); err != nil {
		fmt.Println("with the old limit:", err)
		return 1
	}
	<-p.Done()
	fmt.Println("ok")
	return 0
}

// Without pidfd_open(2) and pidfd_send_signal(2), as before Linux 5.3 or under a strict seccomp filter.
func TestProc_NoPidfd_FallsBackAndSaysSo(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		runHelper(t, nil, "nopidfd", string(level))
	})
}

func helperNoPidfd(args []string) int {
	if err := refusePidfd(); err != nil {
		fmt.Println(err)
		return 1
	}
	if _, err := unix.PidfdOpen(os.Getpid(), 0); !errors.Is(err, unix.ENOSYS) {
		fmt.Println("the filter does nothing:", err)
		return 1
	}
	var log strings.Builder
	for i, argv := range [][]string{sh("exit 9"), helperArgv("ignore-term"), helperArgv("tree", "plain", "stay")} {
		first := make(chan Line, 100)
		p, err := Start(context.Background(), Spec{
			Argv: argv, Containment: Containment(args[0]), Grace: 1, Sink: func(l Line) { first <- l }, Logger: textLogger(&log),
		})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if i == 0 {
			<-p.Done()
		} else {
			<-first
		}
		e, err := p.Stop(context.Background(), "")
		if err != nil || (i == 0) != (e.Code == 9 && e.Cause == CauseSelf) || i == 1 && !e.Escalated {
			fmt.Printf("%q: got %+v, %v\n", argv, e, err)
			return 1
		}
		if left := marked("helper:sleeper"); i == 2 && len(left) > 0 {
			for _, l := range left {
				if s, ok := readStat(l.PID); ok && s.ppid == os.Getpid() {
					fmt.Println("left:", l)
					return 1
				}
			}
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 3 || !strings.Contains(log.String(), "pidfd") {
		fmt.Printf("%d warnings for 3 children:\n%s\n", n, log.String())
		return 1
	}
	fmt.Println("ok")
	return 0
}

// refusePidfd makes the two calls unknown to this process and all that it starts.
func refusePidfd() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PIDFD_OPEN, Jt: 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PIDFD_SEND_SIGNAL, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
