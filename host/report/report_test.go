package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/stats"
)

var update = flag.Bool("update", false, "write the goldens")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// summaries are one with everything in it, one with almost nothing, and one without a number.
func summaries() map[string]*journal.Summary {
	code := 23
	return map[string]*journal.Summary{
		"full": {
			Format: "wevalr.summary/1", Run: journal.SummaryRun{ID: "20261129-101530-abcd", Name: "gsm8k-smoke", Dir: "runs/gsm8k-smoke/20261129-101530-abcd", Attempts: 2},
			Counts: journal.Counts{Planned: 400, Completed: 380, Limit: 10, Errors: 5, Cancelled: 3, NeverRun: 2, Owed: 10, Retried: 7},
			Failures: []journal.FailureCount{
				{Source: failure.Server, Kind: "exited", Count: 4, Example: "env-server (generation 1) exited with code 23 <here>\nsecond line"},
				{Source: failure.Model, Kind: "rate_limited", Count: 1, Example: "ProviderError: slow down"},
			},
			Scores: map[string]stats.Estimate{
				"gsm8k.strict": {
					Mean: new(0.75), SE: new(0.0433), CI: &stats.Interval{0.664, 0.836}, CIMethod: "t", Tasks: 100, Rollouts: 400, Scored: 390,
					Null: 0, Missing: 10, Coverage: 0.975, Bounds: &stats.Interval{0.73, 0.76}, PassAt: map[int]float64{1: 0.75, 2: 0.9, 4: 0.95},
				},
				"gsm8k.length": {Mean: new(123.4), Tasks: 1, Rollouts: 400, Scored: 380, Null: 10, Missing: 10, Coverage: 0.97, Clusters: 3},
			},
			Rewards:   map[string]stats.Estimate{"correct": {Mean: new(0.5), SE: new(0.1), CI: &stats.Interval{0.3, 0.7}, Tasks: 100, Rollouts: 400, Scored: 400, Coverage: 1}},
			Usage:     journal.Usage{InputTokens: 12345, OutputTokens: 678, Cost: new(1.23456)},
			Server:    journal.SummaryServer{Generations: []journal.Generation{{Attempt: 1, Instance: 1, Generation: 1, Code: &code, UptimeS: 12.3}}},
			Plugins:   []journal.SummaryPlugin{{Name: "gsm8k", Plugin: "gsm8k", Version: "1.0.0", SHA256: "ab", ABI: "1.0"}},
			DurationS: 61.25, ExitCode: 4,
		},
		"small": {
			Run:    journal.SummaryRun{ID: "1", Name: "one", Attempts: 1},
			Counts: journal.Counts{Planned: 1, Completed: 1},
			Scores: map[string]stats.Estimate{"a.s": {Mean: new(1.0), Tasks: 1, Rollouts: 1, Scored: 1, Coverage: 1}},
		},
		"nothing": {
			Run:    journal.SummaryRun{ID: "2", Name: "two", Attempts: 1},
			Counts: journal.Counts{Planned: 2, Errors: 2, Owed: 2},
			Scores: map[string]stats.Estimate{"a.s": {Rollouts: 2, Missing: 2}},
		},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestText_Golden(t *testing.T) {
	for name, s := range summaries() {
		var out bytes.Buffer
		if err := Text(&out, s); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", out.Bytes())
	}
}

// However many kinds of failure plugins name, the numbers stay on the screen.
func TestText_ManyKinds(t *testing.T) {
	s := summaries()["full"]
	for i := range 100 {
		s.Failures = append(s.Failures, journal.FailureCount{Source: failure.Plugin, Kind: fmt.Sprint("kind", i), Count: 1})
	}
	var out bytes.Buffer
	if err := Text(&out, s); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "kind17,") || strings.Contains(text, "kind18,") ||
		!strings.Contains(text, "  and 82 kinds more, in summary.json\n") {
		t.Errorf("got\n%s", text)
	}
}

// The JSON is summary.json: one object that reads back as what it was made of.
func TestJSON_Golden(t *testing.T) {
	for name, s := range summaries() {
		var out bytes.Buffer
		if err := JSON(&out, s); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".json", out.Bytes())
		var back journal.Summary
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || !reflect.DeepEqual(&back, s) {
			t.Errorf("%s: got %+v, %v", name, back, err)
		}
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestReport_SaysThatItCouldNotBeWritten(t *testing.T) {
	s := summaries()["full"]
	for name, f := range map[string]func(io.Writer, *journal.Summary) error{"Text": Text, "JSON": JSON} {
		if err := f(full{}, s); !errors.Is(err, errFull) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
