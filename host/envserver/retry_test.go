package envserver

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		" 0.5 ":                         500 * time.Millisecond,
		"-3":                            0,
		"NaN":                           0,
		"soon":                          0,
		"Sun, 29 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 29 Nov 2026 11:00:00 GMT": 0,
		"1e300":                         1e6 * time.Second,
	} {
		if got := retryAfter(http.Header{"Retry-After": {in}}, now); got != want {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
}

func TestBackoff_Wait(t *testing.T) {
	b := backoff{base: 100 * time.Millisecond, max: time.Second, retryAfterMax: 3 * time.Second}
	for n, want := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 3: 400 * time.Millisecond, 5: time.Second, 1000: time.Second} {
		for range 100 {
			if got := b.wait(n, 0); got < want/2 || got > want {
				t.Fatalf("wait(%d): got %v, want %v to %v", n, got, want/2, want)
			}
		}
	}
	if got := b.wait(1, 2*time.Second); got != 2*time.Second {
		t.Errorf("Retry-After of 2s: got %v", got)
	}
	if got := b.wait(1, time.Hour); got != 3*time.Second {
		t.Errorf("Retry-After of 1h: got %v, want the cap of 3s", got)
	}
	if got := (backoff{}).wait(1, 0); got != 0 {
		t.Errorf("zero backoff: got %v, want 0", got)
	}
}

func TestRetryable(t *testing.T) {
	for status, want := range map[int]bool{400: false, 401: false, 404: false, 408: true, 410: false, 422: false, 429: true, 500: true, 502: true, 503: true, 504: true} {
		if got := retryable(status); got != want {
			t.Errorf("%d: got %v, want %v", status, got, want)
		}
	}
}
