package journal

import (
	"cmp"
	"slices"

	"github.com/wevalr/wevalr/host/failure"
)

// State is what is known of a rollout.
type State struct {
	// Outcome is that of the last try that ended; "" when none did.
	Outcome failure.Outcome
	// Source and Kind are the failure's, when Outcome is an error or cancelled.
	Source failure.Source
	Kind   string
	// Tries is how many were dispatched, ended or not: the next one is Tries+1.
	Tries int
	// InFlight: the last try was dispatched in this attempt and has not ended.
	InFlight bool
	// Episode is where the last try's episode is; zero when it has none.
	Episode Ref
}

// State gives the state of the rollout index of a task ordinal; zero when nothing is known of it.
func (v *View) State(task, index int) State {
	t := v.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := t.at(task, index)
	if c == nil {
		return State{}
	}
	s := State{Outcome: outcomes()[c.outcome], Tries: int(c.tries), InFlight: c.phase != idle}
	s.Source, s.Kind = t.kinds[c.kind].source, t.kinds[c.kind].name
	if c.len > 0 {
		s.Episode = Ref{episodeFile(s.Outcome), c.off, int64(c.len), c.crc}
	}
	return s
}

// Counts are the denominators: Planned = Completed + Limit + Errors + Cancelled + NeverRun, and
// Owed = Errors + Cancelled + NeverRun.
type Counts struct {
	Planned   int `json:"planned"`
	Completed int `json:"completed"`
	Limit     int `json:"limit"`
	Errors    int `json:"errors"`
	Cancelled int `json:"cancelled"`
	NeverRun  int `json:"never_run"`
	Owed      int `json:"owed"`
	// Retried is how many of the planned rollouts had more than one try.
	Retried int `json:"retried"`
}

// Counts counts a plan of all tasks × rollouts. A rollout whose tries never ended was never run.
func (v *View) Counts(rollouts int) Counts {
	t := v.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := Counts{Planned: len(t.cells) * rollouts}
	for _, cells := range t.cells {
		for _, c := range cells[:min(len(cells), rollouts)] {
			switch outcomes()[c.outcome] {
			case failure.Completed:
				n.Completed++
			case failure.Limit:
				n.Limit++
			case failure.Errored:
				n.Errors++
			case failure.Dropped:
				n.Cancelled++
			}
			if c.tries > 1 {
				n.Retried++
			}
		}
	}
	n.NeverRun = n.Planned - n.Completed - n.Limit - n.Errors - n.Cancelled
	n.Owed = n.Errors + n.Cancelled + n.NeverRun
	return n
}

// FailureCount is how many planned rollouts ended, for now, in one kind of failure.
type FailureCount struct {
	Source  failure.Source `json:"source"`
	Kind    string         `json:"kind"`
	Count   int            `json:"count"`
	Example string         `json:"example"`
}

// Failures counts the kinds of failure of a plan of all tasks × rollouts, the most frequent first.
func (v *View) Failures(rollouts int) []FailureCount {
	t := v.table
	t.mu.RLock()
	defer t.mu.RUnlock()
	counts := make([]int, len(t.kinds))
	for _, cells := range t.cells {
		for _, c := range cells[:min(len(cells), rollouts)] {
			counts[c.kind]++
		}
	}
	out := []FailureCount{}
	for i, k := range t.kinds {
		if i > 0 && counts[i] > 0 {
			out = append(out, FailureCount{k.source, k.name, counts[i], k.example})
		}
	}
	slices.SortStableFunc(out, func(a, b FailureCount) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// Rewarded reports whether any finished try has rewards of the env-server.
func (v *View) Rewarded() bool {
	v.table.mu.RLock()
	defer v.table.mu.RUnlock()
	return v.table.rewarded
}

// Usage is the sum over all tries, those that ended in an error included.
func (v *View) Usage() Usage {
	v.table.mu.RLock()
	defer v.table.mu.RUnlock()
	return v.table.usage
}

// Generation is how one life of an env-server ended. Code and Signal exclude each other.
type Generation struct {
	Attempt    int     `json:"attempt"`
	Instance   int     `json:"instance"`
	Generation int     `json:"generation"`
	Code       *int    `json:"code"`
	Signal     *int    `json:"signal"`
	UptimeS    float64 `json:"uptime_s"`
}

// Generations lists the env-servers that ended, by attempt, instance and generation.
func (v *View) Generations() []Generation {
	v.table.mu.RLock()
	defer v.table.mu.RUnlock()
	out := slices.Clone(v.table.exits)
	slices.SortStableFunc(out, func(a, b Generation) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Generation, b.Generation))
	})
	return out
}

// server keeps what the summary says of an env-server's end.
func (t *table) server(ev *ServerEvent) {
	if ev.Event != ServerExited {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exits = append(t.exits, Generation{ev.Attempt, ev.Instance, ev.Generation, ev.Code, ev.Signal, ev.UptimeS})
}
