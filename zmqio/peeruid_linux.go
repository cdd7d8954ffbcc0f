package zmqio

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUID tells whose process is at the other end of an ipc connection; ok is false for tcp.
func peerUID(nc net.Conn) (uid int, ok bool, err error) {
	uc, ok := nc.(*net.UnixConn)
	if !ok {
		return 0, false, nil
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return 0, true, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, true, err
	}
	if credErr != nil {
		return 0, true, credErr
	}
	return int(cred.Uid), true, nil
}
