package envserver

import (
	"sync"
	"sync/atomic"
	"time"
)

// signEvery is how often a waiting call may give a sign of life: an answer of its endpoint reaches
// those that wait for theirs so much later at most.
const signEvery = time.Second

// waiting tells a call that waits its turn from one that nobody serves. Many endpoints answer a few
// calls at once, or one, and queue the others; HTTP says nothing of a queue. So an endpoint that brings
// bytes to any call is at work, and those that wait are signs of its queue. An endpoint that brings
// nothing to anybody gives no sign.
type waiting struct {
	every time.Duration
	heard atomic.Int64 // how often the endpoint has brought something, to whatever call
}

// during calls sign from one goroutine, at most once in w.every, as long as the endpoint is heard or
// paused says that the wait is our own. It ends before stop returns.
func (w *waiting) during(sign func(), paused *atomic.Bool) (stop func()) {
	if sign == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(w.every)
		defer tick.Stop()
		seen := w.heard.Load()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if n := w.heard.Load(); n != seen || paused.Load() {
				seen = n
				sign()
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}
