package procwatch

import "testing"

// levels returns those that this system has. Where a control group cannot be had, the tests say so.
func levels(tb testing.TB) []Containment {
	tb.Helper()
	if _, err := nameCgroup(); err != nil {
		tb.Logf("without the level cgroup: %v", err)
		return []Containment{Group, Warden}
	}
	return []Containment{Group, Warden, Cgroup}
}
