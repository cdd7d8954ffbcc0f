package procwatch

import "testing"

// levels returns those that this system has.
func levels(testing.TB) []Containment { return []Containment{Group} }
