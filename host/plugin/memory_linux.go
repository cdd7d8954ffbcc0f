package plugin

import "golang.org/x/sys/unix"

// adviseLarge asks for large pages where only large memories come to: they are had, and given back, hundreds
// of times faster than small ones. Small guests do not round up to them.
func adviseLarge(b []byte) {
	if len(b) > largeFrom {
		_ = unix.Madvise(b[largeFrom:], unix.MADV_HUGEPAGE) // advice only
	}
}
