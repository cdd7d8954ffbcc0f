package procwatch

import (
	"context"
	"strings"
	"syscall"
	"time"
)

// Descendant is a process below the leader as it was seen.
type Descendant struct {
	Process
	// Parent is its parent's number: the leader's for a direct child.
	Parent int
	// Started tells it from another process with the same number, in ticks since boot.
	Started uint64
	// Ended: it is dead, and its parent has not waited for it. Then Code xor Signal say how it
	// ended, as in Exit, and Argv is only its name in brackets.
	Ended      bool
	Code       int
	Signal     syscall.Signal
	Signaled   bool
	CoreDumped bool
}

// DescendantExit is the end of a process below the leader.
type DescendantExit struct {
	Descendant // with the Argv that it had while it lived, if it was seen then
	// At is when the end was seen, less than a second after it.
	At time.Time
	// Lingering marks the second event of the same end: 1 s later the parent had still not waited
	// for it, as one that has given up on it does not.
	Lingering bool
}

// The times of watching descendants.
const (
	descendantEvery  = 250 * time.Millisecond
	descendantLinger = time.Second
)

// processID names a process for good.
type processID struct {
	pid     int
	started uint64
}

// watched is a descendant that is known.
type watched struct {
	argv  []string
	ended time.Time // when its end was seen
	told  bool      // that it lingers
}

// watchDescendants calls f for each end below the leader that its parent leaves to be seen.
func (p *Proc) watchDescendants(life context.Context) {
	known := map[processID]*watched{}
	tick := time.NewTicker(descendantEvery)
	defer tick.Stop()
	for {
		known = p.lookAtDescendants(known, time.Now())
		select {
		case <-tick.C:
		case <-life.Done():
			return
		}
	}
}

// lookAtDescendants tells what is new since known, and returns what is known now.
func (p *Proc) lookAtDescendants(known map[processID]*watched, now time.Time) map[processID]*watched {
	next := map[processID]*watched{}
	for _, d := range p.Descendants() {
		id := processID{d.PID, d.Started}
		w := known[id]
		if w == nil {
			w = &watched{argv: d.Argv}
		}
		next[id] = w
		switch {
		case !d.Ended:
			// It may have executed something else; one that is ending has lost its arguments.
			if !onlyName(d.Argv) {
				w.argv = d.Argv
			}
			continue
		case w.ended.IsZero():
			w.ended = now
		case !w.told && now.Sub(w.ended) >= descendantLinger:
			w.told = true
		default:
			continue
		}
		d.Argv = w.argv
		p.spec.DescendantExited(DescendantExit{Descendant: d, At: w.ended, Lingering: w.told})
	}
	return next
}

// onlyName is what argvOf says of a process that has no arguments any more.
func onlyName(argv []string) bool {
	return len(argv) == 1 && strings.HasPrefix(argv[0], "[") && strings.HasSuffix(argv[0], "]")
}
