// Package stats turns scores into estimates that can be trusted: a mean with its standard error, its
// interval, its denominator and its coverage.
//
// The unit is the task: the rollouts of one task are reduced to their mean first, since they are not
// independent. Intervals are about other tasks drawn like these, not about a re-run of these. Fewer
// than two tasks (or clusters) have no interval: none, which is not 0. An error is missing data, a
// null is a scorer's decision to skip; neither is ever a 0.
//
// An [Accumulator] takes observations in any order and keeps 40 bytes a task. It is not safe for
// concurrent use. Everything else is a pure function. Nothing blocks, so nothing takes a context; the
// only errors are values that are no scores (NaN, Inf, out of the declared range).
package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// The methods of an interval, as printed in ci_method.
const (
	Wilson     = "wilson"      // score interval of a proportion: binary, one rollout a task
	StudentT   = "student_t"   // mean of task means, n-1 degrees of freedom
	ClusteredT = "clustered_t" // cluster-robust, clusters-1 degrees of freedom
)

// Interval is [lo, hi].
type Interval [2]float64

// Estimate is what summary.json says of one scorer. What is nil does not exist: no score at all, or
// too few tasks for an interval.
type Estimate struct {
	Mean *float64 `json:"mean"`
	// SE is the standard error of Mean over tasks; clustered when Clusters is set.
	SE       *float64  `json:"se"`
	CI       *Interval `json:"ci"`
	CIMethod string    `json:"ci_method,omitempty"`
	// Tasks is the N of Mean and SE: tasks with at least one score.
	Tasks int `json:"tasks"`
	// Rollouts is how many were planned (tasks × rollouts; for a group scorer, tasks).
	Rollouts int `json:"rollouts"`
	Scored   int `json:"scored"`
	Null     int `json:"null"`
	// Missing = Rollouts - Scored - Null: errors, owed, or not scored.
	Missing int `json:"missing"`
	// Coverage is Scored/(Rollouts-Null), the share that has a score of those that should; 0 when
	// there is none that should.
	Coverage float64 `json:"coverage"`
	// Bounds are the means with everything missing at the worst and at the best of the scorer's
	// range; nil when something is missing and the range is not known.
	Bounds *Interval `json:"bounds"`
	// Clusters is C, the number of clusters, when tasks declare any.
	Clusters int `json:"clusters,omitempty"`
	// PassAt is pass@k, PassHat is pass^k (all of k), by k; binary scorers only.
	PassAt  map[int]float64 `json:"pass_at,omitempty"`
	PassHat map[int]float64 `json:"pass_hat,omitempty"`
}

// MeanSE gives the mean of xs and its standard error, sd(xs)/√n with n-1 degrees of freedom. The
// mean is NaN for n = 0, the error NaN for n < 2.
func MeanSE(xs []float64) (mean, se float64) {
	n := float64(len(xs))
	var s sum
	for _, x := range xs {
		s.add(x)
	}
	mean = s.over(n)
	if len(xs) < 2 {
		return mean, math.NaN()
	}
	var ss sum
	for _, x := range xs {
		ss.add((x - mean) * (x - mean))
	}
	return mean, math.Sqrt(ss.value() / (n - 1) / n)
}

// ClusteredSE is the cluster-robust standard error of the mean of xs, where cluster[i] in [0, c)
// names the cluster of xs[i] and each has a member: √(C/(C-1) · Σ_g (Σ_{i∈g} (x_i - x̄))²)/n (Liang
// and Zeger 1986, with the C/(C-1) correction). NaN for c < 2.
func ClusteredSE(xs []float64, cluster []int, c int) float64 {
	if c < 2 {
		return math.NaN()
	}
	mean, _ := MeanSE(xs)
	res := make([]sum, c)
	for i, x := range xs {
		res[cluster[i]].add(x - mean)
	}
	var ss sum
	for _, r := range res {
		ss.add(r.value() * r.value())
	}
	return math.Sqrt(float64(c)/float64(c-1)*ss.value()) / float64(len(xs))
}

// TInterval is mean ± t·se at the given confidence (0.95) with df degrees of freedom. It is not cut
// to a scorer's range.
func TInterval(mean, se, df, confidence float64) Interval {
	h := tQuantile(0.5+confidence/2, df) * se
	return Interval{mean - h, mean + h}
}

// tQuantile is Student's quantile. Above 1e5 degrees of freedom gonum's loses digits (six are left
// at 1e9); the first term of the expansion in 1/df (Abramowitz and Stegun 26.7.5) leaves 3e-10.
func tQuantile(p, df float64) float64 {
	if df > 1e5 {
		z := distuv.UnitNormal.Quantile(p)
		return z + (z*z*z+z)/(4*df)
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
}

// WilsonInterval is the score interval (Wilson 1927) of c successes in n > 0; its ends are exact at
// c = 0 and c = n.
func WilsonInterval(c, n int, confidence float64) Interval {
	z := distuv.UnitNormal.Quantile(0.5 + confidence/2)
	nf, p := float64(n), float64(c)/float64(n)
	mid := (p + z*z/(2*nf)) / (1 + z*z/nf)
	half := z / (1 + z*z/nf) * math.Sqrt(p*(1-p)/nf+z*z/(4*nf*nf))
	iv := Interval{mid - half, mid + half}
	if c == 0 {
		iv[0] = 0
	}
	if c == n {
		iv[1] = 1
	}
	return iv
}

// PassAtK is the unbiased estimate of pass@k from c successes in n ≥ k tries: 1 - C(n-c,k)/C(n,k)
// (Chen et al. 2021, https://arxiv.org/abs/2107.03374).
func PassAtK(n, c, k int) float64 {
	if n-c < k {
		return 1
	}
	miss := 1.0
	for i := n - c + 1; i <= n; i++ {
		miss *= 1 - float64(k)/float64(i)
	}
	return 1 - miss
}

// PassHatK is the unbiased estimate of pass^k, that k tries all succeed: C(c,k)/C(n,k) (Yao et al.
// 2024, https://arxiv.org/abs/2406.12045).
func PassHatK(n, c, k int) float64 {
	if c < k {
		return 0
	}
	all := 1.0
	for i := range k {
		all *= float64(c-i) / float64(n-i)
	}
	return all
}

// sum is a compensated sum (Neumaier): the order of the terms does not show in the result.
type sum struct{ hi, lo float64 }

func (s *sum) add(x float64) {
	t := s.hi + x
	if math.Abs(s.hi) >= math.Abs(x) {
		s.lo += (s.hi - t) + x
	} else {
		s.lo += (x - t) + s.hi
	}
	s.hi = t
}

func (s *sum) value() float64 { return s.hi + s.lo }

// over is the sum divided by n, with the rest of the division: the mean of equal terms is that term.
func (s *sum) over(n float64) float64 {
	q := s.hi / n
	return q + (math.FMA(-q, n, s.hi)+s.lo)/n
}
