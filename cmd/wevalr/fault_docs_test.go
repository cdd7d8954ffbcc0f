package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each row of the table of faults in docs/operations.md names tests that there are.
func TestOperations_EachFaultHasItsTest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repoRoot(t), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| fault |")
	table, _, _ = strings.Cut(table, "\n\n")
	if !ok {
		t.Fatal("no table of faults")
	}
	own := testSources(t, ".")
	rows, named := 0, regexp.MustCompile("`(?:([a-z/-]+)\\.)?(Test[^`]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 7 || !strings.HasPrefix(line, "| ") {
			continue // the head's second half, and the line below it
		}
		rows++
		tests := named.FindAllStringSubmatch(cells[5], -1)
		if len(tests) == 0 {
			t.Errorf("no test for: %s", cells[1])
		}
		for _, m := range tests {
			sources := own
			if m[1] != "" {
				sources = testSources(t, filepath.Join(repoRoot(t), m[1]))
			}
			name, sub, _ := strings.Cut(m[2], "/")
			if !strings.Contains(sources, "func "+name+"(t *testing.T)") {
				t.Errorf("no %s for: %s", name, cells[1])
			}
			switch {
			case sub == "":
			case name == "TestScripts":
				if _, err := os.Stat(filepath.Join("testdata", "script", sub+".txtar")); err != nil {
					t.Errorf("%s: %v", cells[1], err)
				}
			case !regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(`"`+sub+`":`)).MatchString(sources):
				t.Errorf("no case %q of %s for: %s", sub, name, cells[1])
			}
		}
	}
	if rows < 30 {
		t.Errorf("got %d rows", rows)
	}
}

// testSources is the text of a folder's tests.
func testSources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
