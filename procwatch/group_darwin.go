package procwatch

import "syscall"

func signalSession(leader int, sig syscall.Signal) { _ = syscall.Kill(-leader, sig) }

func killSession(leader int) []Process {
	_ = syscall.Kill(-leader, syscall.SIGKILL)
	return nil
}
