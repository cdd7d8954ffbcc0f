package procwatch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inNamespace runs a helper as root of a process namespace of its own.
func inNamespace(t *testing.T, mode string, args ...string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"helper:" + mode}, args...)...)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	said := strings.TrimSpace(string(out))
	switch {
	case errors.Is(err, syscall.EPERM):
		t.Skipf("no namespace of processes can be made: %v", err)
	case strings.HasPrefix(said, "skip: "):
		t.Skip(said)
	case err != nil:
		t.Errorf("%v: %s", err, said)
	default:
		t.Log(said)
	}
}

// The leader's number is given to somebody else as soon as it is free: no signal ever reaches that one.
func TestProc_PIDReuse_NoStraySignal(t *testing.T) {
	each(t, func(t *testing.T, level Containment) {
		inNamespace(t, "reuse", string(level), strconv.Itoa(iterations(60, level)+2))
	})
}

// helperReuse is the first process of a namespace. Each round a leader ends while Stop signals it, and
// from then on its number is taken by a process in a session of its own.
func helperReuse(args []string) int {
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, "")); err != nil {
		fmt.Println("skip: /proc of the namespace:", err)
		return 0
	}
	rounds, _ := strconv.Atoi(args[1])
	taken, early, release := 0, 0, make(chan struct{})
	defer close(release)
	for i := range rounds {
		p, err := Start(context.Background(), Spec{
			Argv: sh("echo; read x; exit 9"), Containment: Containment(args[0]), Grace: time.Duration(1+i%3) * time.Millisecond,
			Sink: func(Line) { <-release }, DrainTimeout: 150 * time.Millisecond, // Done is late
		})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		pid := p.PID()
		stopped := make(chan error, 1)
		go func() {
			_, err := p.Stop(context.Background(), "race")
			stopped <- err
		}()
		<-p.Exiting()
		victim, err := takeNumber(pid, p.Done())
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if _, done := p.Exit(); victim != nil && !done {
			early++
		}
		if err := <-stopped; err != nil {
			fmt.Println(err)
			return 1
		}
		p.body.signal(syscall.SIGKILL) // whatever else may still be called
		p.end(CauseStopped, "late")
		if _, err := p.Stop(context.Background(), "late"); err != nil {
			fmt.Println(err)
			return 1
		}
		if victim == nil {
			continue
		}
		taken++
		if err := victim.ask(); err != nil {
			fmt.Printf("round %d: process %d, which is not ours, was hit: %v\n", i, pid, err)
			return 1
		}
		victim.end()
	}
	if (taken == 0 || early == 0) && rounds > 10 {
		fmt.Printf("of %d numbers %d were taken, %d of them before Done\n", rounds, taken, early)
		return 1
	}
	fmt.Printf("%d numbers taken, %d of them before Done\n", taken, early)
	return 0
}

// victim is a process that answers a line for a line.
type victim struct {
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Reader
	w   *os.File
}

// takeNumber starts processes until one has the number. It returns nil when that is still taken after
// done: a thread, even one of ours, has got it.
func takeNumber(pid int, done <-chan struct{}) (*victim, error) {
	for last := false; ; {
		select {
		case <-done:
			if last {
				return nil, nil
			}
			last = true
		default:
		}
		for range 50 {
			if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
				fmt.Println("skip: numbers cannot be chosen:", err)
				os.Exit(0)
			}
			v := &victim{cmd: exec.Command("/bin/sh", "-c", "while read x; do echo $x; done")}
			v.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			in, w, err := os.Pipe()
			if err != nil {
				return nil, err
			}
			r, out, err := os.Pipe()
			if err != nil {
				return nil, err
			}
			v.cmd.Stdin, v.cmd.Stdout, v.w, v.in, v.out = in, out, w, r, bufio.NewReader(r)
			err = v.cmd.Start()
			_ = in.Close()
			_ = out.Close()
			if err != nil {
				return nil, err
			}
			if v.cmd.Process.Pid == pid {
				return v, nil
			}
			v.end()
		}
	}
}

// ask makes sure that it lives, and has lived: a signal that was sent before would end it first.
func (v *victim) ask() error {
	if _, err := v.w.WriteString("well\n"); err != nil {
		return err
	}
	line, err := v.out.ReadString('\n')
	if err == nil && line != "well\n" {
		err = fmt.Errorf("it says %q", line)
	}
	return err
}

func (v *victim) end() {
	_ = v.w.Close()
	_ = v.cmd.Wait()
	_ = v.in.Close()
}
