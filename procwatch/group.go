package procwatch

import (
	"fmt"
	"os"
	"syscall"
)

// body is a child as its containment level sees it. await comes first and once, then bury; signal
// and dead may be called at any time.
type body interface {
	// await returns when the leader is dead and not reaped, or with false when what held it is.
	await() bool
	// bury kills the rest of the tree, and reaps the leader.
	bury() death
	// signal signals the tree, unless the leader is reaped.
	signal(sig syscall.Signal)
	// dead reports whether the leader has ended, although await may not have noticed.
	dead() bool
}

// death is what is known of a body after its end.
type death struct {
	status    syscall.WaitStatus
	usage     Usage
	known     bool // status is; usage may be zero where the warden was lost at the end
	survivors []Process
}

// levelError says why a level of containment cannot be had; Auto goes on with the next one.
type levelError struct {
	level Containment
	err   error
}

func (e *levelError) Error() string {
	return fmt.Sprintf("the level %s cannot be had: %v", e.level, e.err)
}

func (e *levelError) Unwrap() error { return e.err }

// maxProcesses bounds the lists of processes in an Exit.
const maxProcesses = 100

// group is the level Group.
type group struct {
	leader  *leader
	session session // under leader.mu
}

func startGroup(c command, stdio []*os.File) (body, int, error) {
	l, err := launch(c, stdio, leaderAttr())
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

func (g *group) bury() death {
	var survivors []Process
	g.leader.whileUnreaped(func(pid int) { survivors = g.session.kill(pid) })
	d := g.leader.bury()
	d.survivors = survivors
	return d
}
