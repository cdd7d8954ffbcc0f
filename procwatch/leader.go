package procwatch

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// command is what becomes of a Spec before it is executed.
type command struct {
	Path    string
	Argv    []string
	Dir     string
	Env     []string
	Grace   time.Duration
	TempDir string
	Cgroup  string // the directory of the control group to be made for it; "" is none
	// NotifyFD is the number under which it gets the descriptor after stderr; 0: there is none.
	NotifyFD int
}

// leader is a started child that nobody else waits for.
type leader struct {
	pid  int
	dead chan struct{} // it has ended and is not reaped
	reap chan struct{} // closed by bury: it may be reaped
	gone chan struct{} // it is reaped, or its status was taken by somebody

	mu     sync.Mutex // no signal after reaping
	reaped bool

	last  syscall.WaitStatus // after dead: how it ended
	known bool               // after dead: last is
	// What reaping adds:
	status syscall.WaitStatus // after gone
	usage  Usage              // after gone
	err    error              // after gone: there is no status
}

// launch executes c in its own session, with what command.NotifyFD says after stdin, stdout and
// stderr, and with attr's own attributes besides. The goroutine that
// starts it keeps its thread until the child is reaped: a parent-death signal belongs to the
// thread, not to the process (https://go.dev/issue/27505).
func launch(c command, stdio []*os.File, attr *syscall.SysProcAttr) (*leader, error) {
	l := &leader{dead: make(chan struct{}), reap: make(chan struct{}), gone: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := startProcess(c, c.files(stdio), attr)
		if err != nil {
			started <- err
			return
		}
		l.pid = p.Pid
		started <- nil
		l.last, l.known = waitDead(p.Pid)
		close(l.dead)
		<-l.reap
		l.mu.Lock()
		l.reaped = true
		l.mu.Unlock()
		state, err := p.Wait()
		if err != nil {
			l.err = err
		} else if ws, ok := state.Sys().(syscall.WaitStatus); ok {
			l.status = ws
			ru, _ := state.SysUsage().(*syscall.Rusage)
			l.usage = usageOf(ru)
		}
		close(l.gone)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return l, nil
}

// startProcess hands only stdio to the child: what else we hold without close-on-exec, by mistake
// or by inheritance, is closed there.
func startProcess(c command, stdio []*os.File, attr *syscall.SysProcAttr) (*os.Process, error) {
	files := make([]*os.File, max(len(stdio), highestInheritable()+1))
	copy(files, stdio)
	return os.StartProcess(c.Path, c.Argv, &os.ProcAttr{Dir: c.Dir, Env: c.Env, Files: files, Sys: attr})
}

// files puts the notification descriptor under its number.
func (c command) files(stdio []*os.File) []*os.File {
	if c.NotifyFD <= 3 {
		return stdio
	}
	files := make([]*os.File, c.NotifyFD+1)
	copy(files, stdio[:3])
	files[c.NotifyFD] = stdio[3]
	return files
}

// whileUnreaped runs f unless the leader's number may belong to somebody else already.
func (l *leader) whileUnreaped(f func(pid int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.reaped {
		f(l.pid)
	}
}

// bury reaps the leader, which is dead.
func (l *leader) bury() death {
	close(l.reap)
	<-l.gone
	return death{status: l.status, usage: l.usage, known: l.err == nil}
}
