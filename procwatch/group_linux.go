package procwatch

import (
	"syscall"
	"time"
)

// signalSession signals the leader's group at once, then what else is in its session or descends
// from it.
func signalSession(leader int, sig syscall.Signal) {
	_ = syscall.Kill(-leader, sig)
	for _, s := range sessionTree(leader) {
		if s.pgrp != leader && !s.ended() {
			send(s, sig)
		}
	}
}

// killSession kills what is left of the session of a leader that is dead and not reaped.
func killSession(leader int) []Process {
	return sweep(func() []stat { return sessionTree(leader) }, sweepLimit)
}

// sweepLimit bounds the killing after the leader's death: Done follows Exiting by DrainTimeout and
// this at the latest.
const sweepLimit = 800 * time.Millisecond
