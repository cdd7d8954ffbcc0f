package host

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

// testColumns are those of a scorer p.s over three tasks.
func testColumns(t *testing.T) *columns {
	t.Helper()
	run, err := journal.Create(t.TempDir(), "test", time.Unix(1, 0), journal.Identity{Version: "0", TOML: []byte("version = 1\n")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Close(journal.CloseEvent{}) })
	tasks, err := run.SpoolTasks(func(yield func(journal.Task, error) bool) {
		for _, key := range []string{"a", "b", "c"} {
			if !yield(journal.Task{Key: key, JSON: fmt.Appendf(nil, `{"key":%q,"data":{}}`, key)}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := newColumns(tasks, 1, nil)
	c.infos[[2]string{"p", "s"}] = plugin.Scorer{Name: "s"}
	c.byKey["p.s"] = c.column(plugin.Scorer{})
	return c
}

func scoreLine(key string, names ...string) *journal.ScoreLine {
	line := &journal.ScoreLine{Key: key, Index: new(0), Plugin: "p", Scorer: "s"}
	for _, name := range names {
		line.Scores = append(line.Scores, journal.Score{Name: name, Value: new(1.0)})
	}
	return line
}

// A scorer that makes up names has its first ones in the summary; what is left out is a failure.
func TestColumns_Names(t *testing.T) {
	c := testColumns(t)
	var names []string
	for i := range abi.MaxScores {
		names = append(names, fmt.Sprint("n", i))
	}
	for _, line := range []*journal.ScoreLine{
		scoreLine("a", names...), scoreLine("b", names...), scoreLine("c", "more", "n0", "s"), scoreLine("a", "yet"),
	} {
		if err := c.add(line); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.estimates()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != abi.MaxScores+1 || got["p.s.n0"].Scored != 3 || got["p.s.n255"].Scored != 2 || got["p.s"].Scored != 1 {
		t.Errorf("%d columns, n0 %+v, s %+v", len(got), got["p.s.n0"], got["p.s"])
	}
	f := c.failures()
	if len(f) != 1 || f[0].Source != failure.Plugin || f[0].Kind != "response" || f[0].Count != 2 ||
		!strings.Contains(f[0].Example, "p.s of c: over 256 different names: more is in scores.jsonl alone") || !c.leftOut {
		t.Errorf("got %+v, left out: %t", f, c.leftOut)
	}
}

// So has a server that makes up rewards.
func TestColumns_Rewards(t *testing.T) {
	c := testColumns(t)
	for i := range abi.MaxScores + 1 {
		if err := c.reward(fmt.Sprint("r", i), 0, new(0.5)); err != nil {
			t.Fatal(err)
		}
	}
	if f := c.failures(); len(f) != 1 || f[0].Source != failure.Server || f[0].Count != 1 || !c.leftOut {
		t.Errorf("got %+v, left out: %t", f, c.leftOut)
	}
}

// Nor do kinds of failure that a plugin makes up fill the summary.
func TestColumns_Kinds(t *testing.T) {
	c := testColumns(t)
	for i := range journal.MaxKinds + 5 {
		line := scoreLine("a")
		line.Failure = failure.Of(&plugin.GuestError{Code: fmt.Sprint("k", i), Message: "text"})
		if err := c.add(line); err != nil {
			t.Fatal(err)
		}
	}
	other := 0
	for _, f := range c.failures() {
		if f.Kind == "other" {
			other = f.Count
		}
	}
	if len(c.failed) != journal.MaxKinds+1 || other != 5 || c.leftOut {
		t.Errorf("%d kinds, %d others", len(c.failed), other)
	}
}
