package zmqio

import (
	"fmt"
	"net"
	"strings"
)

// pathMax keeps an ipc path inside sun_path, which is 104 bytes on darwin.
const pathMax = 100

// split reads "tcp://host:port" and "ipc://path". A host of "*" means every interface.
func split(endpoint string) (network, addr string, err error) {
	if path, ok := strings.CutPrefix(endpoint, "ipc://"); ok {
		switch {
		case path == "" || path == "*" || path[0] == '@':
			return "", "", fmt.Errorf("zmqio: endpoint %q: want the path of a socket file", endpoint)
		case len(path) >= pathMax:
			return "", "", fmt.Errorf("zmqio: endpoint %q: path of %d bytes, at most %d", endpoint, len(path), pathMax-1)
		}
		return "unix", path, nil
	}
	addr, ok := strings.CutPrefix(endpoint, "tcp://")
	if !ok {
		return "", "", fmt.Errorf("zmqio: endpoint %q: want ipc://path or tcp://host:port", endpoint)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" || host == "" {
		return "", "", fmt.Errorf("zmqio: endpoint %q: want tcp://host:port", endpoint)
	}
	if host == "*" {
		host = ""
	}
	return "tcp", net.JoinHostPort(host, port), nil
}
