//go:build !linux

package meter_test

import "time"

var processStart = time.Now()

// cpu is the time since the process began: other systems do not say how long a thread has been on a core.
func cpu() time.Duration { return time.Since(processStart) }
