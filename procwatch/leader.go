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
}

// leader is a started child that nobody else waits for.
type leader struct {
	pid  int
	dead chan struct{} // it has ended and is not reaped
	reap chan struct{} // closed by bury: it may be reaped
	gone chan struct{} // it is reaped, or its status was taken by somebody

	mu     sync.Mutex // no signal after reaping
	reaped bool

	status syscall.WaitStatus // after gone
	err    error              // after gone: there is no status
}

// launch executes c in its own session with the given stdin, stdout and stderr. The goroutine that
// starts it keeps its thread until the child is reaped: a parent-death signal belongs to the
// thread, not to the process (https://go.dev/issue/27505).
func launch(c command, stdio []*os.File) (*leader, error) {
	l := &leader{dead: make(chan struct{}), reap: make(chan struct{}), gone: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := startProcess(c, stdio, leaderAttr())
		if err != nil {
			started <- err
			return
		}
		l.pid = p.Pid
		started <- nil
		waitDead(p.Pid)
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

// whileUnreaped runs f unless the leader's number may belong to somebody else already.
func (l *leader) whileUnreaped(f func(pid int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.reaped {
		f(l.pid)
	}
}

// bury reaps the leader, which is dead.
func (l *leader) bury() (syscall.WaitStatus, error) {
	close(l.reap)
	<-l.gone
	return l.status, l.err
}
