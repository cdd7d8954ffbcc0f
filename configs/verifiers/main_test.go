// Package verifiers_test holds wevalr to verifiers' own env-server, client and episodes. It drives the
// built wevalr as a person does. What needs verifiers skips, in one line, without the Pythons that
// versions.txt names; the rest runs with Go alone.
package verifiers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wevalr/wevalr/configs/internal/evaltest"
)

// patience is how long a test waits for anything: starting Python on a busy machine takes its time.
const patience = 10 * time.Minute

var wevalr string // the built binary

// TestMain makes the test binary two programs: the tests, and the old servers of dialect_test.go.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "router" {
		os.Exit(router(os.Args[2], os.Args[3]))
	}
	os.Exit(evaltest.Main(m, &wevalr))
}

// version is a line of versions.txt.
type version struct{ name, variable, python string }

func versions(t *testing.T) []version {
	t.Helper()
	b, err := os.ReadFile("versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []version
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 2 {
			t.Fatalf("versions.txt: %q", line)
		}
		out = append(out, version{f[0], f[1], os.Getenv(f[1])})
	}
	return out
}

// eachVersion runs f for every version that is there.
func eachVersion(t *testing.T, f func(t *testing.T, v version)) {
	t.Helper()
	for _, v := range versions(t) {
		t.Run(v.name, func(t *testing.T) {
			v.need(t)
			f(t, v)
		})
	}
}

// release is the first version: faults are tried on it alone.
func release(t *testing.T) version {
	t.Helper()
	v := versions(t)[0]
	v.need(t)
	return v
}

func (v version) need(t *testing.T) {
	t.Helper()
	if v.python == "" {
		t.Skipf("%s is not set: no Python with verifiers %s", v.variable, v.name)
	}
}

// eval is an eval file of its own in a folder of its own.
type eval struct {
	dir, file string
	fatePath  string // of a router, see dialect_test.go
}

// task is one line of the tasks' file.
type task map[string]any

// plain are n tasks of one turn each.
func plain(n int) []task {
	out := make([]task, n)
	for i := range out {
		w := fmt.Sprintf("w%d", i)
		out[i] = task{"key": fmt.Sprintf("word-%04d", i), "target": w, "data": map[string]any{"idx": i, "prompt": "Say the word " + w + ".", "answer": w}}
	}
	return out
}

// newEval writes an eval file with the [server] lines; an empty base URL leaves the client out.
func newEval(t *testing.T, baseURL, server string, tasks []task) *eval {
	t.Helper()
	e := &eval{dir: t.TempDir()}
	var lines bytes.Buffer
	for _, x := range tasks {
		if err := json.NewEncoder(&lines).Encode(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(e.dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	e.write(t, "data/tasks.jsonl", lines.String())
	client := ""
	if baseURL != "" {
		client = fmt.Sprintf("client = { base_url = %q }", baseURL)
	}
	root := repo(t)
	e.file = e.write(t, "eval.toml", fmt.Sprintf(`version = 1
name = "interop"
[tasks]
plugin = "jsonl"
[[score]]
plugin = "exact-match"
[model]
name = "stand-in"
%s
[server]
%s
[[plugin]]
name = "jsonl"
source = %q
grant = { fs.dataset = %q }
[[plugin]]
name = "exact-match"
source = %q
`, client, server, filepath.Join(root, "plugins/jsonl"), filepath.Join(e.dir, "data"), filepath.Join(root, "plugins/exact-match")))
	return e
}

func (e *eval) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(e.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// score adds a plugin that scores.
func (e *eval) score(t *testing.T, name, source string) {
	t.Helper()
	b, err := os.ReadFile(e.file)
	if err != nil {
		t.Fatal(err)
	}
	e.write(t, "eval.toml", fmt.Sprintf("%s[[score]]\nplugin = %q\n[[plugin]]\nname = %q\nsource = %q\n", b, name, name, source))
}

// command is the [server] command that serves a taskset with v's Python; args go on it.
func (v version) command(t *testing.T, taskset string, args ...string) string {
	t.Helper()
	argv := append([]string{v.python, filepath.Join(repo(t), "configs/verifiers/serve.py"), "--address", "{address}", "--taskset", taskset}, args...)
	list, _ := json.Marshal(argv)
	return fmt.Sprintf("command = %s\nenv = [\"PYTHONPATH\", \"PYTHONDONTWRITEBYTECODE\"]\nstart_timeout = \"%s\"\n", list, patience)
}

// process is a wevalr that was started.
type process struct {
	*exec.Cmd
	t              *testing.T
	eval           *eval
	stdout, stderr bytes.Buffer
	done           <-chan struct{}
}

// result is how a wevalr ended.
type result struct {
	code    int
	summary summary
	stderr  string
	dir     string // the run's
}

type summary struct {
	Run struct {
		Dir string
	}
	Planned, Completed, Errors, Cancelled, Owed int
	Never                                       int `json:"never_run"`
	Failures                                    []struct {
		Source, Kind, Example string
		Count                 int
	}
	Scores, Rewards map[string]struct {
		Mean     *float64
		Rollouts int
	}
}

// start starts wevalr in the eval's folder.
func (e *eval) start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(wevalr, args...), t: t, eval: e}
	p.Dir = e.dir
	p.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+filepath.Join(repo(t), "configs/verifiers/testdata"))
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	p.done = evaltest.Start(t, p.Cmd)
	return p
}

// comes waits for ch; a wevalr that ends first is a failure.
func (p *process) comes(ch <-chan struct{}, what string) {
	p.t.Helper()
	either := make(chan struct{})
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(either)
		select {
		case <-ch:
		case <-p.done:
		case <-stop:
		}
	}()
	within(p.t, either, what, p.eval.story)
	select {
	case <-ch:
	default:
		p.t.Fatalf("wevalr ended before: %s\n%s\n%s", what, p.stderr.String(), p.eval.story())
	}
}

// wait waits for its end.
func (p *process) wait() result {
	p.t.Helper()
	within(p.t, p.done, "end of wevalr", func() string { return p.eval.story() })
	r := result{code: p.ProcessState.ExitCode(), stderr: p.stderr.String()}
	if p.stdout.Len() > 0 {
		if err := json.Unmarshal(p.stdout.Bytes(), &r.summary); err != nil {
			p.t.Fatalf("stdout is no summary: %v\n%s\n%s", err, p.stdout.String(), r.stderr)
		}
		r.dir = r.summary.Run.Dir
		if !filepath.IsAbs(r.dir) {
			r.dir = filepath.Join(p.Dir, r.dir)
		}
	}
	return r
}

// run runs the eval file to its end.
func (e *eval) run(t *testing.T, args ...string) result {
	t.Helper()
	return e.start(t, append([]string{"run", e.file, "--json"}, args...)...).wait()
}

// complete runs it to an end with n completed rollouts.
func (e *eval) complete(t *testing.T, n int, args ...string) result {
	t.Helper()
	r := e.run(t, args...)
	r.wantComplete(t, n)
	return r
}

func (r result) wantComplete(t *testing.T, n int) {
	t.Helper()
	if r.code != 0 || r.summary.Planned != n || r.summary.Completed != n || r.summary.Owed != 0 {
		t.Fatalf("got exit code %d, %+v; want %d completed\n%s", r.code, r.summary, n, r.stderr)
	}
}

// resume goes on with r's run.
func (e *eval) resume(t *testing.T, r result, args ...string) result {
	t.Helper()
	return e.start(t, append([]string{"resume", r.dir, "--json"}, args...)...).wait()
}

// story is what the newest run's logs say, for a test that failed.
func (e *eval) story() string {
	var b strings.Builder
	logs, _ := filepath.Glob(filepath.Join(e.dir, "runs/*/*/logs/attempt_*/*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(path), text[max(0, len(text)-4000):])
	}
	return b.String()
}

// events are the journal's lines of a kind; of the newest run where there are several.
func events(t *testing.T, dir, kind string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, line := range readLines(t, filepath.Join(dir, "journal.jsonl")) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil && m["t"] == kind {
			out = append(out, m)
		}
	}
	return out
}

// readLines are a file's lines; none where there is no file.
func readLines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(b)))
}

// serverPID is the newest env-server of the eval's only run.
func (e *eval) serverPID(t *testing.T) int {
	t.Helper()
	dirs, _ := filepath.Glob(filepath.Join(e.dir, "runs/*/*/journal.jsonl"))
	if len(dirs) != 1 {
		t.Fatalf("got runs %v, want one", dirs)
	}
	pid := 0
	for _, ev := range events(t, filepath.Dir(dirs[0]), "server") {
		if p, ok := ev["pid"].(float64); ok && ev["event"] == "ready" {
			pid = int(p)
		}
	}
	if pid == 0 {
		t.Fatal("no env-server was ready")
	}
	return pid
}

// script runs a Python program of testdata and gives its stdout.
func (v version) script(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, v.python, append([]string{name}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out, stderr.String())
	}
	return string(out)
}

// within waits for ch and says what else was going on when it does not come.
func within(t *testing.T, ch <-chan struct{}, what string, story func() string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		buf := make([]byte, 1<<20)
		buf = buf[:runtime.Stack(buf, true)]
		if story != nil {
			t.Log(story())
		}
		t.Fatalf("no %s after %v\n%s", what, patience, buf)
	}
}

func repo(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// state is a process's state letter; "" when it is gone.
func state(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:min(1, len(rest))]
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}
