package stats

import (
	"errors"
	"math"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// near fails unless got and want agree to a relative 1e-10.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-10*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: got %.17g, want %.17g", what, got, want)
	}
}

// statsmodels.stats.proportion.proportion_confint(c, n, method="wilson")
func TestWilsonInterval_Reference(t *testing.T) {
	for _, r := range []struct {
		c, n   int
		lo, hi float64
	}{
		{742, 1319, 0.5356326528399583, 0.5890988475978164},
		{0, 10, 0, 0.27753279986288926},
		{10, 10, 0.7224672001371106, 1},
		{1, 2, 0.09453120573423068, 0.9054687942657693},
		{95, 100, 0.8882495307680808, 0.9784563208456319},
	} {
		iv := WilsonInterval(r.c, r.n, 0.95)
		near(t, "lo", iv[0], r.lo)
		near(t, "hi", iv[1], r.hi)
	}
	if iv := WilsonInterval(0, 7, 0.95); iv[0] != 0 {
		t.Errorf("lower end at 0 successes: got %v, want exactly 0", iv[0])
	}
	if iv := WilsonInterval(7, 7, 0.95); iv[1] != 1 {
		t.Errorf("upper end at n successes: got %v, want exactly 1", iv[1])
	}
}

// scipy.stats.t.ppf(0.975, df)
func TestTInterval_Quantiles(t *testing.T) {
	for _, r := range []struct{ df, want float64 }{
		{1, 12.706204736174694},
		{2, 4.302652729749462},
		{5, 2.5705818356363146},
		{30, 2.0422724563012378},
		{1e3, 1.9623390808264083},
		{1e6, 1.959966356814107},
		{1e9, 1.959963986912325},
	} {
		near(t, "t", TInterval(0, 1, r.df, 0.95)[1], r.want)
	}
}

// The same eight task means, unclustered and in four clusters.
func TestEstimate_Reference(t *testing.T) {
	xs := []float64{0.25, 0.5, 1, 0.75, 0, 0.5, 0.9, 0.1}
	a := New(Options{})
	for i, x := range xs {
		mustAdd(t, a, i, x)
	}
	// x.mean(); scipy.stats.sem(x); scipy.stats.t.interval(0.95, 7, mean, sem)
	e := a.Estimate(8, 1)
	near(t, "mean", *e.Mean, 0.5)
	near(t, "se", *e.SE, 0.12990381056766578)
	near(t, "lo", e.CI[0], 0.19282629915738253)
	near(t, "hi", e.CI[1], 0.8071737008426174)
	if e.CIMethod != StudentT || e.Clusters != 0 {
		t.Errorf("got %q with %d clusters, want student_t with none", e.CIMethod, e.Clusters)
	}
	// sm.OLS(x, np.ones(8)).fit(cov_type="cluster", cov_kwds={"groups": g}, use_t=True): bse, conf_int()
	for i, g := range []string{"a", "a", "b", "b", "b", "c", "c", ""} {
		a.Cluster(i, g)
	}
	e = a.Estimate(8, 1)
	near(t, "clustered se", *e.SE, 0.09628516673576118)
	near(t, "clustered lo", e.CI[0], 0.19357762686815094)
	near(t, "clustered hi", e.CI[1], 0.8064223731318488)
	if e.CIMethod != ClusteredT || e.Clusters != 4 {
		t.Errorf("got %q with %d clusters, want clustered_t with 4", e.CIMethod, e.Clusters)
	}
}

// math.comb: 1 - comb(n-c, k)/comb(n, k) and comb(c, k)/comb(n, k)
func TestPass_Reference(t *testing.T) {
	for _, r := range []struct {
		n, c, k int
		at, hat float64
	}{
		{10, 3, 1, 0.3, 0.3},
		{10, 3, 5, 0.9166666666666666, 0},
		{8, 8, 4, 1, 1},
		{8, 0, 4, 0, 0},
		{200, 13, 100, 0.9999194971988055, 0},
		{5, 2, 3, 0.9, 0},
		{5, 4, 2, 1, 0.6}, // comb(4, 2)/comb(5, 2)
	} {
		near(t, "pass@k", PassAtK(r.n, r.c, r.k), r.at)
		near(t, "pass^k", PassHatK(r.n, r.c, r.k), r.hat)
	}
}

func TestEstimate_Binary_Wilson(t *testing.T) {
	a := New(Options{Binary: true})
	for i := range 1319 {
		v := 0.0
		if i < 742 {
			v = 1
		}
		mustAdd(t, a, i, v)
	}
	e := a.Estimate(1319, 1)
	near(t, "lo", e.CI[0], 0.5356326528399583)
	near(t, "hi", e.CI[1], 0.5890988475978164)
	if e.CIMethod != Wilson {
		t.Errorf("method: got %q, want wilson", e.CIMethod)
	}
	if got, want := Format(e), "0.5625 ± 0.0137 [0.536, 0.589] n=1319/1319"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	mustAdd(t, a, 0, 1)
	if e := a.Estimate(1319, 2); e.CIMethod != StudentT {
		t.Errorf("method with two rollouts of a task: got %q, want student_t", e.CIMethod)
	}
}

func TestEstimate_MissingAndNull(t *testing.T) {
	a := New(Options{Binary: true})
	mustAdd(t, a, 0, 1)
	mustAdd(t, a, 0, 0) // task 0: 1/2
	mustAdd(t, a, 1, 1)
	a.Null(1) // task 1: 1/1 and one skipped
	a.Null(2)
	a.Null(2)           // task 2: skipped
	mustAdd(t, a, 3, 1) // task 3: one missing; task 4: both missing
	e := a.Estimate(5, 2)
	near(t, "mean", *e.Mean, (0.5+1+1)/3)
	if e.Tasks != 3 || e.Rollouts != 10 || e.Scored != 4 || e.Null != 3 || e.Missing != 3 {
		t.Errorf("counts: got %+v", e)
	}
	near(t, "coverage", e.Coverage, 4.0/7)
	near(t, "worst", e.Bounds[0], (0.5+1+0.5+0)/4)
	near(t, "best", e.Bounds[1], (0.5+1+1+1)/4)
	// n >= k: at 2 only task 0.
	near(t, "pass@1", e.PassAt[1], (0.5+1+1)/3)
	near(t, "pass@2", e.PassAt[2], 1)
	near(t, "pass^2", e.PassHat[2], 0)

	b := New(Options{})
	mustAdd(t, b, 0, 3)
	if e := b.Estimate(2, 1); e.Bounds != nil {
		t.Errorf("bounds without a range: got %v, want none", *e.Bounds)
	}
	if e := b.Estimate(1, 1); e.Bounds == nil || *e.Bounds != (Interval{3, 3}) {
		t.Errorf("bounds with nothing missing: got %v, want [3 3]", e.Bounds)
	}
}

func TestEstimate_TooFew(t *testing.T) {
	e := New(Options{Binary: true}).Estimate(0, 4)
	if e.Mean != nil || e.SE != nil || e.CI != nil || e.Bounds != nil || e.Coverage != 0 || e.PassAt != nil {
		t.Errorf("nothing planned: got %+v, want no numbers", e)
	}
	a := New(Options{Binary: true})
	mustAdd(t, a, 0, 1)
	e = a.Estimate(1, 1)
	if e.Mean == nil || *e.Mean != 1 || e.SE != nil || e.CI != nil || e.CIMethod != "" {
		t.Errorf("one task: got %+v, want a mean and no interval", e)
	}
	mustAdd(t, a, 1, 1)
	a.Cluster(0, "x")
	a.Cluster(1, "x")
	if e = a.Estimate(2, 1); e.SE != nil || e.CI != nil || e.Clusters != 1 {
		t.Errorf("one cluster: got %+v, want no interval", e)
	}
}

func TestAccumulator_Add_Refuses(t *testing.T) {
	for _, r := range []struct {
		opt Options
		v   float64
	}{
		{Options{}, math.NaN()},
		{Options{}, math.Inf(-1)},
		{Options{}, 1e200},
		{Options{Range: &Interval{0, 10}}, 10.5},
		{Options{Binary: true}, 0.5},
	} {
		a := New(r.opt)
		var bad *ValueError
		if err := a.Add(0, r.v); !errors.As(err, &bad) {
			t.Errorf("%v: got %v, want *ValueError", r.v, err)
		}
		if e := a.Estimate(1, 1); e.Scored != 0 {
			t.Errorf("%v: it was recorded", r.v)
		}
	}
	if (&ValueError{}).Error() == "" {
		t.Error("the zero ValueError says nothing")
	}
}

func TestFormat(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	for _, r := range []struct {
		e    Estimate
		want string
	}{
		{Estimate{Missing: 10}, "none n=0/10"},
		{Estimate{Mean: f(1), Scored: 1}, "1.0000 n=1/1"},
		{Estimate{Mean: f(12.3456), SE: f(1.2345), CI: &Interval{9.9, 14.8}, Scored: 9, Missing: 1}, "12.35 ± 1.23 [9.9, 14.8] n=9/10"},
		{Estimate{Mean: f(1234.5678), SE: f(123.45), CI: &Interval{990, 1480}, Scored: 9}, "1234.57 ± 123.45 [990.0, 1480.0] n=9/9"},
		{Estimate{Mean: f(1), SE: f(0), CI: &Interval{1, 1}, Scored: 3}, "1.0000 ± 0.0000 [1.000, 1.000] n=3/3"},
		{Estimate{Mean: f(-1e-9), SE: f(0.1), Scored: 3}, "0.000 ± 0.100 n=3/3"},
	} {
		if got := Format(r.e); got != r.want {
			t.Errorf("got %q, want %q", got, r.want)
		}
	}
}

func mustAdd(t interface {
	Helper()
	Fatal(...any)
}, a *Accumulator, task int, v float64,
) {
	t.Helper()
	if err := a.Add(task, v); err != nil {
		t.Fatal(err)
	}
}
