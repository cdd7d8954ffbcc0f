package meter_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpu is the time that this thread has been on a core: what other processes take does not count.
// Whoever compares two of its readings locks the thread.
func cpu() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
