package server

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reservePort gives a loopback port that nobody else comes upon until release: the kernel hands out no port that
// is bound, neither to who listens on any nor to who connects. Who asks for it by its number and sets SO_REUSEADDR,
// as libzmq and Go do, may listen on it meanwhile, for nobody listens here.
func reservePort() (port int, release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("a loopback port: %w", err)
	}
	release = func() { _ = unix.Close(fd) } // nothing was sent on it
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		var at unix.Sockaddr
		if at, err = unix.Getsockname(fd); err == nil {
			if in4, ok := at.(*unix.SockaddrInet4); ok {
				return in4.Port, release, nil
			}
			err = fmt.Errorf("bound to %T", at)
		}
	}
	release()
	return 0, nil, fmt.Errorf("a loopback port: %w", err)
}
