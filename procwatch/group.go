package procwatch

import (
	"os"
	"syscall"
)

// body is a child as its containment level sees it. await comes first and once, then bury; signal
// and dead may be called at any time.
type body interface {
	// await returns when the leader is dead and not reaped, or with false when what held it is.
	await() bool
	// bury kills the rest of the tree, names it, and reaps the leader. ok: the status is known.
	bury() (ws syscall.WaitStatus, survivors []Process, ok bool)
	// signal signals the tree, unless the leader is reaped.
	signal(sig syscall.Signal)
	// dead reports whether the leader has ended, although await may not have noticed.
	dead() bool
}

// maxProcesses bounds the lists of processes in an Exit.
const maxProcesses = 100

// group is the level Group.
type group struct {
	leader  *leader
	session session // under leader.mu
}

func startGroup(c command, stdio []*os.File) (body, int, error) {
	l, err := launch(c, stdio)
	if err != nil {
		return nil, 0, err
	}
	return &group{leader: l}, l.pid, nil
}

func (g *group) await() bool {
	<-g.leader.dead
	return true
}

func (g *group) signal(sig syscall.Signal) {
	g.leader.whileUnreaped(func(pid int) { g.session.signal(pid, sig) })
}

func (g *group) dead() (dead bool) {
	dead = true
	g.leader.whileUnreaped(func(pid int) { dead = isDead(pid) })
	return dead
}

func (g *group) bury() (_ syscall.WaitStatus, survivors []Process, _ bool) {
	g.leader.whileUnreaped(func(pid int) { survivors = g.session.kill(pid) })
	ws, err := g.leader.bury()
	return ws, survivors, err == nil
}
