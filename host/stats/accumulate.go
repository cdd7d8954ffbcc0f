package stats

import (
	"fmt"
	"math"
	"slices"
)

// Options says what is known of a scorer. The zero value fits a reward that nobody described.
type Options struct {
	// Binary: every value is 0 or 1, as the scorer's manifest declares. Enables Wilson and pass@k.
	Binary bool
	// Range is the declared [lo, hi]; nil when unknown. A binary scorer's is [0, 1] by itself.
	Range *Interval
	// Confidence of intervals; 0 means 0.95.
	Confidence float64
	// K are the k of pass@k and pass^k; nil: 1, the powers of two up to the rollouts a task, and
	// that number itself.
	K []int
}

// maxValue keeps squares and their sums finite.
const maxValue = 1e100

// ValueError is a value that is no score.
type ValueError struct {
	Task  int
	Value float64
	Why   string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("stats: task %d: value %v: %s", e.Task, e.Value, e.Why)
}

// Accumulator collects one scorer's observations, by task ordinal (0, 1, … as in tasks.jsonl).
type Accumulator struct {
	opt      Options
	cells    []cell
	clusters map[string]int32
}

type cell struct {
	sum     sum
	count   int32
	null    int32
	cluster int32 // 0: none
}

// New makes an empty Accumulator.
func New(opt Options) *Accumulator {
	if opt.Confidence == 0 {
		opt.Confidence = 0.95
	}
	if opt.Binary && opt.Range == nil {
		opt.Range = &Interval{0, 1}
	}
	return &Accumulator{opt: opt}
}

// Add records a score. A rollout that has none is not added: it is missing.
//
// # Errors
//
// *[ValueError] for NaN, Inf, a magnitude above 1e100, a value out of the range, or neither 0 nor 1 where Binary; nothing is
// recorded then.
func (a *Accumulator) Add(task int, v float64) error {
	switch r := a.opt.Range; {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return &ValueError{task, v, "not a finite number"}
	case math.Abs(v) > maxValue:
		return &ValueError{task, v, "too large to average"}
	case r != nil && (v < r[0] || v > r[1]):
		return &ValueError{task, v, fmt.Sprintf("outside the range [%v, %v]", r[0], r[1])}
	case a.opt.Binary && v != 0 && v != 1:
		return &ValueError{task, v, "binary scorer: neither 0 nor 1"}
	}
	c := a.cell(task)
	c.sum.add(v)
	c.count++
	return nil
}

// Null records that the scorer skipped a rollout.
func (a *Accumulator) Null(task int) { a.cell(task).null++ }

// Cluster says to which cluster a task belongs; "" is none: the task is then a cluster of its own.
func (a *Accumulator) Cluster(task int, name string) {
	if name == "" {
		return
	}
	if a.clusters == nil {
		a.clusters = map[string]int32{}
	}
	id, ok := a.clusters[name]
	if !ok {
		id = int32(len(a.clusters) + 1)
		a.clusters[name] = id
	}
	a.cell(task).cluster = id
}

func (a *Accumulator) cell(task int) *cell {
	if n := task + 1 - len(a.cells); n > 0 {
		a.cells = append(a.cells, make([]cell, n)...)
	}
	return &a.cells[task]
}

// Estimate reduces what was added to the estimate of a plan of tasks × rollouts (a group scorer has
// one value a task: rollouts = 1). Observations of tasks beyond the plan still count.
func (a *Accumulator) Estimate(tasks, rollouts int) Estimate {
	tasks = max(tasks, len(a.cells))
	e := Estimate{Rollouts: tasks * rollouts}
	means := make([]float64, 0, len(a.cells))
	most := 0
	for _, c := range a.cells {
		e.Scored += int(c.count)
		e.Null += int(c.null)
		most = max(most, int(c.count))
		if c.count > 0 {
			means = append(means, c.sum.over(float64(c.count)))
		}
	}
	e.Tasks = len(means)
	e.Missing = max(0, e.Rollouts-e.Scored-e.Null)
	if due := e.Scored + e.Missing; due > 0 {
		e.Coverage = float64(e.Scored) / float64(due)
	}
	e.Bounds = a.bounds(tasks, rollouts)
	if e.Tasks == 0 {
		return e
	}
	mean, se := MeanSE(means)
	e.Mean = &mean
	a.interval(&e, means, se, most)
	if a.opt.Binary {
		a.pass(&e, most)
	}
	return e
}

// interval fills SE, CI and CIMethod. With fewer than two tasks or clusters there is none.
func (a *Accumulator) interval(e *Estimate, means []float64, se float64, most int) {
	df := float64(e.Tasks - 1)
	method := StudentT
	if len(a.clusters) > 0 {
		ids, c := a.clusterIDs()
		e.Clusters, method, df = c, ClusteredT, float64(c-1)
		se = ClusteredSE(means, ids, c)
	}
	if e.Tasks < 2 || df < 1 {
		return
	}
	var iv Interval
	if a.opt.Binary && most == 1 && method == StudentT {
		method = Wilson
		iv = WilsonInterval(int(math.Round(*e.Mean*float64(e.Tasks))), e.Tasks, a.opt.Confidence)
	} else {
		iv = TInterval(*e.Mean, se, df, a.opt.Confidence)
	}
	e.SE, e.CI, e.CIMethod = &se, &iv, method
}

// clusterIDs numbers the clusters of the scored tasks densely, in task order.
func (a *Accumulator) clusterIDs() (ids []int, n int) {
	dense := make([]int, len(a.clusters)+1)
	for _, c := range a.cells {
		switch {
		case c.count == 0:
			continue
		case c.cluster == 0:
			n++
			ids = append(ids, n-1)
			continue
		case dense[c.cluster] == 0:
			n++
			dense[c.cluster] = n
		}
		ids = append(ids, dense[c.cluster]-1)
	}
	return ids, n
}

// bounds are the means over the planned tasks with the missing at either end of the range.
func (a *Accumulator) bounds(tasks, rollouts int) *Interval {
	var lo, hi sum
	n := 0
	for i := range tasks {
		var c cell
		if i < len(a.cells) {
			c = a.cells[i]
		}
		missing := float64(max(0, rollouts-int(c.count)-int(c.null)))
		due := float64(c.count) + missing
		if due == 0 {
			continue
		}
		n++
		var r Interval
		if missing > 0 {
			if a.opt.Range == nil {
				return nil
			}
			r = *a.opt.Range
		}
		worst, best := c.sum, c.sum
		worst.add(missing * r[0])
		best.add(missing * r[1])
		lo.add(worst.over(due))
		hi.add(best.over(due))
	}
	if n == 0 {
		return nil
	}
	return &Interval{lo.over(float64(n)), hi.over(float64(n))}
}

// pass fills pass@k and pass^k, each averaged over the tasks with at least k scored rollouts.
func (a *Accumulator) pass(e *Estimate, most int) {
	ks := a.opt.K
	if ks == nil {
		for k := 1; k < most; k *= 2 {
			ks = append(ks, k)
		}
		ks = append(ks, most)
	}
	for _, k := range slices.Compact(slices.Sorted(slices.Values(ks))) {
		var at, hat sum
		n := 0
		for _, c := range a.cells {
			if k < 1 || int(c.count) < k {
				continue
			}
			n++
			right := int(math.Round(c.sum.value()))
			at.add(PassAtK(int(c.count), right, k))
			hat.add(PassHatK(int(c.count), right, k))
		}
		if n == 0 {
			continue
		}
		if e.PassAt == nil {
			e.PassAt, e.PassHat = map[int]float64{}, map[int]float64{}
		}
		e.PassAt[k] = at.over(float64(n))
		e.PassHat[k] = hat.over(float64(n))
	}
}
