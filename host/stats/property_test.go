package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

type obs struct {
	task int
	v    float64
}

func drawObs(t *rapid.T, values *rapid.Generator[float64]) []obs {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) obs {
		return obs{rapid.IntRange(0, 12).Draw(t, "task"), values.Draw(t, "v")}
	}), 1, 60).Draw(t, "obs")
}

func fill(t *rapid.T, opt Options, in []obs) *Accumulator {
	a := New(opt)
	for _, o := range in {
		mustAdd(t, a, o.task, o.v)
	}
	return a
}

func TestEstimate_OrderInvariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawObs(t, rapid.Float64Range(-1e3, 1e3))
		shuffled := rapid.Permutation(in).Draw(t, "shuffled")
		a, b := fill(t, Options{}, in).Estimate(13, 9), fill(t, Options{}, shuffled).Estimate(13, 9)
		if !reflect.DeepEqual(a, b) { // to the last bit
			t.Fatalf("got %+v and %+v", a, b)
		}
	})
}

// A copy of every task in the cluster of its original carries no information.
func TestEstimate_DuplicatedInClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(0, 1), 2, 20).Draw(t, "xs")
		copies := rapid.IntRange(2, 5).Draw(t, "copies")
		one, many := New(Options{}), New(Options{})
		for i, x := range xs {
			g := strconv.Itoa(i % max(2, len(xs)/2))
			mustAdd(t, one, i, x)
			one.Cluster(i, g)
			for c := range copies {
				mustAdd(t, many, i*copies+c, x)
				many.Cluster(i*copies+c, g)
			}
		}
		a, b := one.Estimate(len(xs), 1), many.Estimate(len(xs)*copies, 1)
		if math.Abs(*a.Mean-*b.Mean) > 1e-12 || math.Abs(*a.SE-*b.SE) > 1e-12 || a.Clusters != b.Clusters {
			t.Fatalf("got %v ± %v (%d), want %v ± %v (%d)", *b.Mean, *b.SE, b.Clusters, *a.Mean, *a.SE, a.Clusters)
		}
	})
}

// A cluster for each task is no clustering.
func TestEstimate_SingletonClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(0, 1), 2, 20).Draw(t, "xs")
		plain, single := New(Options{}), New(Options{})
		for i, x := range xs {
			mustAdd(t, plain, i, x)
			mustAdd(t, single, i, x)
			single.Cluster(i, strconv.Itoa(i))
		}
		a, b := plain.Estimate(len(xs), 1), single.Estimate(len(xs), 1)
		if math.Abs(*a.SE-*b.SE) > 1e-12 || math.Abs(a.CI[0]-b.CI[0]) > 1e-12 {
			t.Fatalf("got %v %v, want %v %v", *b.SE, *b.CI, *a.SE, *a.CI)
		}
	})
}

func TestEstimate_AllEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-1e6, 1e6).Draw(t, "x")
		n, r := rapid.IntRange(2, 30).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "r")
		a := New(Options{})
		for i := range n * r {
			mustAdd(t, a, i/r, x)
		}
		e := a.Estimate(n, r)
		if *e.Mean != x || *e.SE != 0 || *e.CI != (Interval{x, x}) || *e.Bounds != (Interval{x, x}) {
			t.Fatalf("got %v ± %v %v %v, want exactly %v ± 0", *e.Mean, *e.SE, *e.CI, *e.Bounds, x)
		}
	})
}

// Whatever was scored: the mean lies in its bounds, the counts add up, JSON can hold it.
func TestEstimate_Consistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawObs(t, rapid.SampledFrom([]float64{0, 1}))
		a := fill(t, Options{Binary: true}, in)
		for range rapid.IntRange(0, 9).Draw(t, "nulls") {
			a.Null(rapid.IntRange(0, 12).Draw(t, "null"))
		}
		e := a.Estimate(13, 80)
		if e.Scored != len(in) || e.Scored+e.Null+e.Missing != e.Rollouts {
			t.Fatalf("counts do not add up: %+v", e)
		}
		if e.Bounds[0] > e.Bounds[1] || e.Bounds[0] < 0 || e.Bounds[1] > 1 {
			t.Fatalf("bounds: %v", *e.Bounds)
		}
		if math.Abs(e.PassAt[1]-*e.Mean) > 1e-12 || math.Abs(e.PassHat[1]-*e.Mean) > 1e-12 {
			t.Fatalf("pass@1 %v and pass^1 %v are not the mean %v", e.PassAt[1], e.PassHat[1], *e.Mean)
		}
		last := 0.0
		for k := range 80 {
			v, ok := e.PassAt[k]
			if ok && e.Tasks == 1 && v < last {
				t.Fatalf("pass@%d = %v fell below %v", k, v, last)
			}
			last = max(last, v)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEstimate_HugeN(t *testing.T) {
	const n = 1_000_000
	a := New(Options{Range: &Interval{0, 1}})
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		mustAdd(t, a, i, rng.Float64())
	}
	e := a.Estimate(n, 1)
	// Uniform: mean 1/2, sd 1/√12; five standard errors.
	if math.Abs(*e.Mean-0.5) > 5e-3/math.Sqrt(12) {
		t.Errorf("mean: got %v", *e.Mean)
	}
	if want := 1e-3 / math.Sqrt(12); math.Abs(*e.SE-want) > want/100 {
		t.Errorf("se: got %v, want %v", *e.SE, want)
	}
	near(t, "t at 1e6 degrees of freedom", (e.CI[1]-*e.Mean) / *e.SE, 1.959966356814107)
}

func BenchmarkAccumulator_Add(b *testing.B) {
	a := New(Options{Binary: true})
	for i := range b.N {
		mustAdd(b, a, i%100_000, float64(i%2))
	}
}
