package config

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestLoad_Wrong_EveryProblemWithItsLine runs each testdata/wrong/*.toml; lines `# flag: -n 0` and
// `# set: KEY=VALUE` at its top are overrides.
func TestLoad_Wrong_EveryProblemWithItsLine(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.toml")
	if err != nil || len(files) < 24 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			_, err := testLoader().Load(file, overrides(t, file))
			var all Errors
			if !errors.As(err, &all) || len(all) == 0 {
				t.Fatalf("got %v want Errors", err)
			}
			last := 0
			for _, e := range all {
				if e.Hint == "" || e.Msg == "" || e.From == "" && (e.Line == 0 || e.File != file) || e.Line < last {
					t.Errorf("without place, text or hint, or out of order: %+v", e)
				}
				last = e.Line
			}
			got := strings.ReplaceAll(err.Error(), here, "TESTDATA") + "\n"
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret is repeated:\n%s", got)
			}
			golden := strings.TrimSuffix(file, ".toml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func overrides(t *testing.T, file string) []Override {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []Override
	for sc := bufio.NewScanner(bytes.NewReader(src)); sc.Scan(); {
		if arg, ok := strings.CutPrefix(sc.Text(), "# flag: "); ok {
			name, value, _ := strings.Cut(arg, " ")
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, Flag(name, n))
		}
		if arg, ok := strings.CutPrefix(sc.Text(), "# set: "); ok {
			o, err := ParseSet(arg)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, o)
		}
	}
	return out
}
