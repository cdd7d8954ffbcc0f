package plugin

import (
	"sync"
	"time"
)

// stopwatch fires once when the time on core is used up. It stands still while a call is parked.
type stopwatch struct {
	mu      sync.Mutex
	left    time.Duration
	since   time.Time // zero while it stands still
	timer   *time.Timer
	used    time.Duration
	stopped bool
}

// newStopwatch starts at once.
func newStopwatch(limit time.Duration, fire func()) *stopwatch {
	return &stopwatch{left: limit, since: time.Now(), timer: time.AfterFunc(limit, fire)}
}

func (s *stopwatch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold()
}

func (s *stopwatch) hold() {
	if s.since.IsZero() {
		return
	}
	s.timer.Stop()
	d := time.Since(s.since)
	s.used += d
	s.left -= d
	s.since = time.Time{}
}

func (s *stopwatch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || !s.since.IsZero() {
		return
	}
	s.since = time.Now()
	s.timer.Reset(max(s.left, 0))
}

// shorten leaves at most d.
func (s *stopwatch) shorten(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := !s.since.IsZero()
	s.hold()
	s.left = min(s.left, d)
	if running && !s.stopped {
		s.since = time.Now()
		s.timer.Reset(max(s.left, 0))
	}
}

// stop ends it and gives the time on core.
func (s *stopwatch) stop() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold()
	s.stopped = true
	return s.used
}
