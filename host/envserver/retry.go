package envserver

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// backoff says how long to wait before another try of a model call.
type backoff struct {
	base time.Duration // before the second try; doubled for each further one
	max  time.Duration // of our own waits
	// retryAfterMax bounds what an endpoint may ask for: it is not the endpoint that decides how
	// long an evaluation stands still.
	retryAfterMax time.Duration
}

// wait is the pause after the n-th failed try (from 1). An endpoint's own Retry-After (0 = none)
// is honoured; otherwise the wait is between half and all of base·2^(n-1), so that rollouts that
// failed together do not come back together.
func (b backoff) wait(n int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return min(retryAfter, b.retryAfterMax)
	}
	d := b.max
	if n < 32 {
		d = min(b.base<<(n-1), b.max)
	}
	if d <= 0 {
		return 0
	}
	return d/2 + rand.N(d/2+1)
}

// retryAfter reads the header of RFC 9110 §10.2.3: seconds (fractions are seen in the wild) or an
// HTTP date. 0 = absent, past or unreadable.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s <= 0 || s != s {
			return 0
		}
		return time.Duration(min(s, 1e6) * float64(time.Second))
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}

// retryable reports whether the same call may succeed a moment later.
func retryable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}
