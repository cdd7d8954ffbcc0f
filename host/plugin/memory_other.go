//go:build unix && !linux

package plugin

// adviseLarge has nothing to advise here.
func adviseLarge([]byte) {}
