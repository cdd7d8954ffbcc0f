package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdExits: exits CODE program args… — the program must end with that code.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code: got %d want %d", got, want)
	}
}

// cmdRundir: rundir VAR DIR — VAR becomes the one run directory under DIR (runs/<name>).
func cmdRundir(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: rundir VAR DIR")
	}
	found, err := filepath.Glob(filepath.Join(ts.MkAbs(args[1]), "*", "run.json"))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("run directories in %s: got %d want 1", args[1], len(found))
	}
	ts.Setenv(args[0], filepath.Dir(found[0]))
}

// cmdField: field FILE a/b/0/c WANT — the value at that path of a JSON file ("stdout" too) is WANT, which
// is JSON or else a string. With ! it must differ or be missing.
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: [!] field FILE path/to/value WANT")
	}
	var v, want any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &v); err != nil {
		ts.Fatalf("%s: not one JSON value: %v", args[0], err)
	}
	for name := range strings.SplitSeq(args[1], "/") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(at) {
				ts.Fatalf("%s: %s: no item %q of %d", args[0], args[1], name, len(at))
			}
			v = at[i]
		default:
			ts.Fatalf("%s: %s: nothing at %q", args[0], args[1], name)
		}
	}
	if json.Unmarshal([]byte(args[2]), &want) != nil {
		want = args[2]
	}
	if reflect.DeepEqual(v, want) == neg {
		got, _ := json.Marshal(v)
		ts.Fatalf("%s: %s: got %s want %s", args[0], args[1], got, args[2])
	}
}

// cmdAwait: await N REGEXP GLOB — waits until the files hold N matches.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: await N REGEXP GLOB")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := awaitMatches(n, regexp.MustCompile(args[1]), ts.MkAbs(args[2])); got < n {
		ts.Fatalf("await: got %d want %d matches of %s in %s", got, n, args[1], args[2])
	}
}

// awaitMatches polls files until they hold n matches, for at most half a minute.
func awaitMatches(n int, re *regexp.Regexp, glob string) int {
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		got := 0
		files, _ := filepath.Glob(glob)
		for _, f := range files {
			b, _ := os.ReadFile(f)
			got += len(re.FindAll(b, -1))
		}
		if got >= n {
			return got
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return got
		}
	}
}

// cmdSub: sub FILE OLD NEW — replaces every OLD, which must be there; \n in NEW is a newline.
func cmdSub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: sub FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("sub: %s: no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.ReplaceAll(text, args[1], strings.ReplaceAll(args[2], `\n`, "\n"))), 0o644))
}
