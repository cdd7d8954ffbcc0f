package abi

// String is the status as snake_case: the code that the Go SDK gives an env error which a plugin
// passes on. Unknown statuses are "internal", as the ABI says.
func (s Status) String() string {
	switch s {
	case Denied:
		return "denied"
	case Invalid:
		return "invalid"
	case TooLarge:
		return "too_large"
	case Cancelled:
		return "cancelled"
	case Deadline:
		return "deadline"
	case ServerExited:
		return "server_exited"
	case PeerFailed:
		return "peer_error"
	case WorkerLost:
		return "worker_lost"
	case LimitReached:
		return "limit"
	case NotFound:
		return "not_found"
	case ConnectionLost:
		return "connection_lost"
	case Stalled:
		return "stalled"
	case Protocol:
		return "protocol"
	default:
		return "internal"
	}
}

// ValidTaskKey reports whether key may name a task: 1 to [MaxTaskKey] bytes of [A-Za-z0-9._/:-],
// without "..".
func ValidTaskKey(key string) bool {
	if key == "" || len(key) > MaxTaskKey {
		return false
	}
	for i := range len(key) {
		c := key[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '_', c == '/', c == ':', c == '-':
		case c == '.' && (i == 0 || key[i-1] != '.'):
		default:
			return false
		}
	}
	return true
}
