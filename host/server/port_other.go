//go:build !linux

package server

import (
	"fmt"
	"net"
)

// reservePort gives a loopback port that is free now; nobody promises it: a server that finds it taken says so
// and exits.
func reservePort() (port int, release func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		return 0, nil, fmt.Errorf("a loopback port: %w", err)
	}
	_ = l.Close() // nothing was sent on it
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		return at.Port, func() {}, nil
	}
	return 0, nil, fmt.Errorf("a loopback port: bound to %v", l.Addr())
}
