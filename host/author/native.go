package author

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

// nativeTest is compiled into the plugin's own test: the cases run against the SDK's emulator.
//
//go:embed native/cases_test.go.tmpl
var nativeTest string

// sdkImport is what a plugin that the emulator can run imports.
const sdkImport = `"github.com/wevalr/wevalr/plugins/sdk"`

// maxOutput bounds what is kept of go test's own text.
const maxOutput = 16 << 10

// Native is what `go test` in the plugin's folder came to.
type Native struct {
	Ran    bool   `json:"ran"`
	OK     bool   `json:"ok"`
	Why    string `json:"why,omitempty"` // it did not run
	TookMS int64  `json:"took_ms"`
	Output string `json:"output,omitempty"` // where it failed
}

// nativeCase and nativeInput are what the file nativeTest reads, nativeResult what it writes.
type nativeCase struct {
	Kind     string
	Options  map[string]any
	Scorer   string
	Task     abi.Task
	Episode  *abi.Episode
	Episodes []abi.Episode
	Replies  []abi.Episode
}

type nativeInput struct {
	Cases            []nativeCase
	Datasets, Assets map[string]string
	Sampling         []string
}

type nativeResult struct {
	Scores   []abi.Score
	Selected int
	Keys     []string
	Code     string
	Error    string
}

func (r nativeResult) same() string { return text([]any{r.Scores, r.Selected, r.Keys, r.Code}) }

// native runs the plugin's own tests and these cases with `go test`; results are in the cases' order, nil
// where they did not run.
func (g *guest) native(ctx context.Context, dir string, cases []*Case) (*Native, []nativeResult) {
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(sources) == 0 {
		return &Native{Why: "not Go"}, nil
	}
	uses := false
	for _, file := range sources {
		b, err := os.ReadFile(file)
		uses = uses || err == nil && strings.Contains(string(b), sdkImport)
	}
	if !uses {
		return &Native{Why: "the Go SDK is not imported"}, nil
	}
	n := &Native{Ran: true}
	start := time.Now()
	results, output, err := g.goTest(ctx, dir, cases)
	n.TookMS = time.Since(start).Milliseconds()
	n.OK = err == nil
	if err != nil {
		n.Output = strings.TrimSpace(err.Error() + "\n" + output)
	}
	return n, results
}

func (g *guest) goTest(ctx context.Context, dir string, cases []*Case) (results []nativeResult, output string, err error) {
	tmp, err := os.MkdirTemp("", "wevalr-test-")
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, "", err
	}
	input, err := g.nativeInput(dir, cases)
	if err != nil {
		return nil, "", err
	}
	in, out := filepath.Join(tmp, "cases.json"), filepath.Join(tmp, "results.json")
	file, overlay := filepath.Join(tmp, "cases_test.go"), filepath.Join(tmp, "overlay.json")
	for path, content := range map[string]string{
		in: text(input), file: nativeTest,
		overlay: text(map[string]any{"Replace": map[string]string{filepath.Join(dir, "zz_wevalr_cases_test.go"): file}}),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return nil, "", err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-overlay", overlay, ".")
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=", "WEVALR_CASES="+in, "WEVALR_RESULTS="+out)
	cmd.WaitDelay = 5 * time.Second
	b, err := cmd.CombinedOutput()
	if len(b) > maxOutput {
		b = append([]byte("…"), b[len(b)-maxOutput:]...)
	}
	if errors.Is(err, exec.ErrNotFound) {
		err = errors.New("the Go toolchain (command go) is not on PATH: install Go from https://go.dev/dl")
	}
	if got, rerr := os.ReadFile(out); rerr == nil {
		dec := json.NewDecoder(bytes.NewReader(got))
		dec.UseNumber()
		if err := dec.Decode(&results); err != nil || len(results) != len(cases) {
			return nil, string(b), fmt.Errorf("go test: the cases' results cannot be read: %w", err)
		}
	}
	if err != nil {
		err = fmt.Errorf("go test: %w", err)
	}
	return results, string(b), err
}

func (g *guest) nativeInput(dir string, cases []*Case) (*nativeInput, error) {
	m := g.in.Manifest
	in := &nativeInput{Cases: []nativeCase{}, Datasets: g.spec.Grants.FS, Assets: map[string]string{}}
	if g.spec.Grants.Env != nil {
		in.Sampling = g.spec.Grants.Env.Sampling
	}
	for _, pattern := range m.Assets {
		names, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			in.Assets[name] = filepath.Join(dir, filepath.FromSlash(name))
		}
	}
	for _, c := range cases {
		n := nativeCase{Kind: c.kind(), Options: withDefaults(m, c.Options), Scorer: c.Scorer}
		if c.Task != nil {
			n.Task = *c.Task
		}
		views := m.RolloutView()
		if s, err := g.scorer(c.Scorer); err == nil {
			views = s.Views()
		}
		if c.Episode != nil {
			ep := only(*c.Episode, views)
			n.Episode = &ep
		}
		for _, ep := range c.Episodes {
			n.Episodes = append(n.Episodes, only(ep, views))
		}
		for _, ep := range c.Replies {
			n.Replies = append(n.Replies, only(ep, m.RolloutView()))
		}
		in.Cases = append(in.Cases, n)
	}
	return in, nil
}

func withDefaults(m *plugin.Manifest, given map[string]any) map[string]any {
	out := map[string]any{}
	for _, o := range m.Options {
		if o.Default != nil {
			out[o.Name] = o.Default
		}
	}
	maps.Copy(out, given)
	return out
}
