package procwatch

import (
	"syscall"
	"time"
)

// session is what the level Group knows of a tree on this system.
type session struct {
	met []stat // outside the leader's session when a signal was sent
}

// signal signals the leader's group at once, and what else is in its session or descends from it:
// that is read before, since what the signal orphans descends from it no more.
func (s *session) signal(leader int, sig syscall.Signal) {
	tree := sessionTree(leader)
	_ = syscall.Kill(-leader, sig)
	for _, m := range tree {
		if m.pgrp != leader && !m.ended() {
			send(m, sig)
		}
		if m.session != leader {
			s.met = append(s.met, m)
		}
	}
}

// kill kills what is left when the leader is dead and not reaped.
func (s *session) kill(leader int) []Process {
	return sweep(func() []stat {
		left := sessionTree(leader)
		for _, m := range s.met {
			if now, ok := readStat(m.pid); ok && now.start == m.start {
				left = append(left, now)
			}
		}
		return left
	}, nil, sweepLimit)
}

// sweepLimit bounds the killing after the leader's death: Done follows Exiting by DrainTimeout and
// this at the latest.
const sweepLimit = 800 * time.Millisecond
