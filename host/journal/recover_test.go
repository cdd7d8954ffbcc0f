package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/failure"
)

func TestOpen_MovesTornTails(t *testing.T) {
	r := newRun(t, 2)
	run1(t, r, "t/0", 0, failure.Completed)
	run1(t, r, "t/1", 0, failure.Errored)
	mustClose(t, r)
	tails := map[string]string{
		JournalFile: `{"t":"finish","key":"t/0"`,
		TracesFile:  "{\"orphan\":1}\n{\"torn",
		ErroredFile: "{\"orphan\":2}\n",
		TasksFile:   `{"sha256":`,
		PartialFile: `{"key":`,
		ScoresFile:  `{"key":"t/0","index":0,"plug`,
	}
	for name, text := range tails {
		appendTo(t, r, name, text)
	}
	v, err := Read(r.Dir())
	if err != nil {
		t.Fatalf("a reader sees what is committed: %v", err)
	}
	if c := v.Counts(1); c.Completed != 1 || c.Errors != 1 {
		t.Errorf("reader's counts: %+v", c)
	}
	v.Close()
	again, err := Open(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, again)
	for _, n := range again.Recovered() {
		want := tails[n.File]
		if got, err := os.ReadFile(filepath.Join(r.Dir(), n.Moved)); err != nil || string(got) != want || n.Bytes != int64(len(want)) {
			t.Errorf("%s: got %q (%d bytes), %v, want %q", n.Moved, got, n.Bytes, err, want)
		}
		delete(tails, n.File)
	}
	if len(tails) > 0 {
		t.Errorf("not recovered: %v", tails)
	}
	run1(t, again, "t/1", 0, failure.Completed)
	if got := len(lines(t, again, TracesFile)); got != 2 {
		t.Errorf("traces.jsonl has %d lines, want 2", got)
	}
}

func TestOpen_BrokenLineStops(t *testing.T) {
	for name, c := range map[string]struct{ file, text string }{
		"no JSON":             {JournalFile, "{]\n"},
		"unknown record":      {JournalFile, `{"t":"grow"}` + "\n"},
		"finish twice":        {JournalFile, "\x00again"},
		"unknown task":        {JournalFile, `{"t":"dispatch","key":"x","index":0,"try":1}` + "\n"},
		"absurd index":        {JournalFile, `{"t":"dispatch","key":"t/0","index":99999999999,"try":1}` + "\n"},
		"attempt out of turn": {JournalFile, `{"t":"open","attempt":7}` + "\n"},
		"task with a bad sum": {TasksFile, `{"sha256":"00","key":"k","task":{}}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, 2)
			run1(t, r, "t/0", 0, failure.Completed)
			mustClose(t, r)
			all := lines(t, r, c.file)
			if c.text == "\x00again" {
				c.text = all[2] + "\n"
			}
			appendTo(t, r, c.file, c.text)
			var bad *CorruptError
			_, err := Open(r.Dir())
			if !errors.As(err, &bad) || bad.File != c.file || bad.Line != len(all)+1 {
				t.Fatalf("got %v, want *CorruptError in %s line %d", err, c.file, len(all)+1)
			}
			if again, err := os.ReadFile(filepath.Join(r.Dir(), c.file)); err != nil || !strings.HasSuffix(string(again), c.text) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpen_EpisodesCutShort(t *testing.T) {
	r := newRun(t, 1)
	run1(t, r, "t/0", 0, failure.Completed)
	mustClose(t, r)
	if err := os.Truncate(filepath.Join(r.Dir(), TracesFile), 5); err != nil {
		t.Fatal(err)
	}
	var bad *CorruptError
	if _, err := Open(r.Dir()); !errors.As(err, &bad) || bad.File != JournalFile || bad.Line != 3 {
		t.Errorf("got %v, want *CorruptError at journal.jsonl:3", err)
	}
}

func TestView_Episode_Checksum(t *testing.T) {
	r := newRun(t, 1)
	run1(t, r, "t/0", 0, failure.Completed)
	path := filepath.Join(r.Dir(), TracesFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[3] ^= 1
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	var bad *CorruptError
	if _, err := r.Episode(r.State(0, 0).Episode); !errors.As(err, &bad) {
		t.Errorf("got %v, want *CorruptError", err)
	}
}

func TestScores_OneLineEach(t *testing.T) {
	r := newRun(t, 2)
	run1(t, r, "t/0", 0, failure.Completed)
	score := func(index *int, rollouts int, f *failure.Failure, v float64) {
		t.Helper()
		s := ScoreLine{Key: "t/0", Index: index, Plugin: "p", Scorer: "s", Rollouts: rollouts, Failure: f}
		if f == nil {
			s.Scores = []Score{{Value: &v}}
		}
		if err := r.Score(s); err != nil {
			t.Fatal(err)
		}
	}
	score(new(0), 0, failure.New(failure.Plugin, "deadline", "too slow"), 0)
	if r.Scored(0, 0, "p", "s") {
		t.Error("a scorer's failure counts as scored")
	}
	score(new(0), 0, nil, 0.5)
	score(nil, 1, nil, 1)
	score(nil, 2, nil, 2)
	if !r.Scored(0, 0, "p", "s") || r.Scored(0, 0, "p", "other") || r.Scored(1, 0, "p", "s") {
		t.Error("scored: a wrong answer")
	}
	if r.ScoredGroup(0, 1, "p", "s") || !r.ScoredGroup(0, 2, "p", "s") {
		t.Error("a group score of another number of rollouts counts")
	}
	values := func(v *View) (out []float64) {
		t.Helper()
		for s, err := range v.Scores() {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, *s.Scores[0].Value)
		}
		return out
	}
	if got, want := values(r.View), []float64{0.5, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	mustClose(t, r)
	if got := len(lines(t, r, ScoresFile)); got != 2 {
		t.Errorf("after close: %d lines, want one for each", got)
	}

	appendTo(t, r, ScoresFile, `{"key":"t/1","index":0,"plugin":"p","scorer":"s"}`+"\nrubbish\n")
	r, err := Open(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, r)
	if got, want := values(r.View), []float64{0.5, 2}; !slices.Equal(got, want) || !r.Scored(0, 0, "p", "s") || !r.ScoredGroup(0, 2, "p", "s") {
		t.Errorf("after recovery: got %v, want %v", got, want)
	}
	if got := len(lines(t, r, ScoresFile)); got != 2 || len(r.Recovered()) != 1 {
		t.Errorf("after recovery: %d lines, notes %v", got, r.Recovered())
	}
}

func TestScores_TooManyScorers(t *testing.T) {
	r := newRun(t, 1)
	run1(t, r, "t/0", 0, failure.Completed)
	for i := range maxScorers + 1 {
		err := r.Score(ScoreLine{Key: "t/0", Index: new(0), Plugin: "p", Scorer: fmt.Sprint(i)})
		if (err != nil) != (i == maxScorers) {
			t.Fatalf("scorer %d: %v", i, err)
		}
	}
}

func TestOpen_SweepsTemporaryFiles(t *testing.T) {
	r := newRun(t, 1)
	mustClose(t, r)
	left := filepath.Join(r.Dir(), "."+SummaryFile+"1234")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, r)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there", left)
	}
}

func FuzzRead_Journal(f *testing.F) {
	r := newRun(f, 2)
	run1(f, r, "t/0", 0, failure.Completed)
	run1(f, r, "t/1", 0, failure.Errored)
	mustClose(f, r)
	path := filepath.Join(r.Dir(), JournalFile)
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"t":"dispatch","key":"t/0","index":1048576,"try":1}` + "\n"))
	f.Add([]byte(`{"t":"finish","key":"t/0","try":1,"outcome":"completed","episode":{"file":"../x","off":-1}}` + "\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		v, err := Read(r.Dir())
		if err != nil {
			if _, ok := errors.AsType[*CorruptError](err); !ok {
				t.Fatalf("got %v, want *CorruptError", err)
			}
			return
		}
		defer v.Close()
		if c := v.Counts(4); c.Planned != c.Completed+c.Limit+c.Owed {
			t.Fatalf("counts do not add up: %+v", c)
		}
	})
}
