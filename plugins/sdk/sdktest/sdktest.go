//go:build !wasip1

// Package sdktest runs a plugin natively in `go test`: it plays the host, so that a test or a
// debugger sees the same calls, in the same bytes, as the module would.
//
//	p := sdktest.New(t, sdktest.Host{Options: map[string]any{"max": 9}})
//	scores, err := p.Score("correct", task, abi.Episode{Completion: "7"})
//
// Every call is preceded by an init, as on a fresh instance. The plugin of the process is the one
// registered with package sdk; calls of parallel tests wait for one another.
//
// A plugin's own failure comes back as [*sdk.Error]; a panic panics, as under a debugger it should.
package sdktest

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"sync"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/codec"
)

// Host is what the plugin is granted. The zero value grants nothing.
type Host struct {
	// Options are the plugin's options; defaults are the plugin's own.
	Options map[string]any
	// Datasets are the trees granted as fs.NAME.
	Datasets map[string]fs.FS
	// Assets travel inside the module.
	Assets map[string][]byte
	// Env plays the env-server: one call of it for each call that the plugin makes, in its own
	// goroutine. ctx ends when the plugin cancels, and after the rollout. An [*abi.EnvError] reaches
	// the plugin as it is; any other error as an internal one. nil: not granted.
	Env func(ctx context.Context, req abi.EnvRequest) (*abi.Episode, error)
	// Sampling are the granted sampling keys.
	Sampling []string
}

// Plugin is the registered plugin under a host. Its methods may be used by one goroutine.
type Plugin struct {
	t    testing.TB
	host Host
	logs []string
	fail string
}

// running keeps calls apart: a native process has one guest.
var running sync.Mutex

// New puts the registered plugin under h. It does not call it yet.
func New(t testing.TB, h Host) *Plugin { return &Plugin{t: t, host: h} }

// Logs are the messages that the plugin logged.
func (p *Plugin) Logs() []string { return p.logs }

// Failed is the text of a panic, "" if there was none.
func (p *Plugin) Failed() string { return p.fail }

// Init calls op 1: the number of tasks, -1 where it is not known.
func (p *Plugin) Init() (tasks int64, err error) {
	running.Lock()
	defer running.Unlock()
	return p.init()
}

func (p *Plugin) init() (int64, error) {
	out, err := call(p, nil, abi.OpInit, abi.InitRequest{Options: p.host.Options, Host: abi.HostInfo{
		Name: "sdktest", Version: "0.0.0", ABIMajor: abi.Major, ABIMinor: abi.Minor,
	}}, codec.WriteInit, codec.ReadInitResponse)
	if err != nil || out.Tasks == nil {
		return -1, err
	}
	return *out.Tasks, nil
}

// Tasks gives all tasks, a page of limit at a time, and fails the test where the host would refuse
// them: for a bad or repeated key, a page that is too long, or a cursor that stands still.
func (p *Plugin) Tasks(limit int) ([]abi.Task, error) {
	var all []abi.Task
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := run(p, nil, abi.OpTasks, abi.TasksRequest{Cursor: cursor, Limit: int64(limit)}, codec.WriteTasks, codec.ReadTasksResponse)
		if err != nil {
			return all, err
		}
		if len(page.Tasks) > limit {
			p.t.Errorf("tasks: got a page of %d, want at most %d", len(page.Tasks), limit)
		}
		for _, task := range page.Tasks {
			if !abi.ValidTaskKey(task.Key) || seen[task.Key] {
				p.t.Errorf("tasks: key %q is not valid, or there twice", task.Key)
			}
			seen[task.Key] = true
		}
		all = append(all, page.Tasks...)
		if page.Next == "" {
			return all, nil
		}
		if page.Next == cursor {
			p.t.Fatalf("tasks: the cursor %q stands still", cursor)
		}
		cursor = page.Next
	}
}

// Score calls op 4.
func (p *Plugin) Score(scorer string, task abi.Task, ep abi.Episode) ([]abi.Score, error) {
	out, err := run(p, nil, abi.OpScore, abi.ScoreRequest{Scorer: scorer, Task: task, Episode: ep}, codec.WriteScoreRequest, codec.ReadScoreResponse)
	p.check(out.Scores)
	return out.Scores, err
}

// ScoreGroup calls op 5.
func (p *Plugin) ScoreGroup(scorer string, task abi.Task, eps []abi.Episode) ([]abi.Score, error) {
	out, err := run(p, nil, abi.OpScoreGroup, abi.ScoreGroupRequest{Scorer: scorer, Task: task, Episodes: eps}, codec.WriteScoreGroupRequest, codec.ReadScoreResponse)
	p.check(out.Scores)
	return out.Scores, err
}

// Rollout is what a driven rollout came to.
type Rollout struct {
	Episodes []*abi.Episode
	Selected int
	Scores   []abi.Score
}

// Rollout calls op 3, and fails the test where the host would refuse the answer.
func (p *Plugin) Rollout(req abi.RolloutRequest) (Rollout, error) {
	env := newEnv(p.host)
	defer env.close()
	resp, err := run(p, env, abi.OpRollout, req, codec.WriteRollout, codec.ReadRolloutResponse)
	if err != nil {
		return Rollout{}, err
	}
	out := Rollout{Selected: int(resp.Selected), Scores: resp.Scores}
	for _, id := range resp.Episodes {
		ep := env.episode(id)
		if ep == nil {
			p.t.Errorf("rollout: handle %d is not open and finished with an episode", id)
		}
		out.Episodes = append(out.Episodes, ep)
	}
	if out.Selected < 0 || out.Selected >= len(out.Episodes) {
		p.t.Errorf("rollout: got selected %d of %d episodes", out.Selected, len(out.Episodes))
	}
	p.check(out.Scores)
	return out, nil
}

// check fails the test for a score that the host would refuse whatever the manifest says.
func (p *Plugin) check(scores []abi.Score) {
	for _, s := range scores {
		if s.Value != nil && (math.IsNaN(*s.Value) || math.IsInf(*s.Value, 0)) {
			p.t.Errorf("score %q: got %v, which is no score", s.Name, *s.Value)
		}
	}
}

// run is an init and one call on the plugin.
func run[Q, R any](p *Plugin, e *env, op abi.Op, q Q, write func(*codec.Writer, Q), read func(*codec.Reader) R) (R, error) {
	running.Lock()
	defer running.Unlock()
	if _, err := p.init(); err != nil {
		var none R
		return none, err
	}
	return call(p, e, op, q, write, read)
}

func call[Q, R any](p *Plugin, e *env, op abi.Op, q Q, write func(*codec.Writer, Q), read func(*codec.Reader) R) (out R, err error) {
	w := &codec.Writer{}
	write(w, q)
	if w.Err != nil {
		p.t.Fatalf("op %d: the request cannot be encoded: %v", op, w.Err)
	}
	r := codec.NewReader(sdk.Emulate(p.emulator(e), op, w.B))
	for range r.MapLen() {
		switch string(r.Key()) {
		case "ok":
			out = read(r)
		case "err":
			x := codec.ReadError(r)
			err = &sdk.Error{Code: x.Code, Message: x.Message, Retryable: x.Retryable, Data: x.Data}
		default:
			r.Skip()
		}
	}
	if r.End() != nil {
		p.t.Fatalf("op %d: the response cannot be read: %v", op, r.Err())
	}
	return out, err
}

func (p *Plugin) emulator(e *env) sdk.Emulator {
	emu := sdk.Emulator{
		LogEnabled: func(int32) bool { return true },
		Log:        func(_ int32, msg string) { p.logs = append(p.logs, msg) },
		Fail:       func(text string) { p.fail = text },
		Asset: func(name string) ([]byte, bool) {
			b, ok := p.host.Assets[name]
			return b, ok
		},
		Dataset: func(name string) fs.FS { return p.host.Datasets[name] },
	}
	if e != nil && p.host.Env != nil {
		emu.EnvStart, emu.EnvAwait, emu.EnvPoll = e.start, e.await, e.poll
		emu.EnvCancel, emu.EnvTake, emu.EnvClose = e.cancel, e.take, e.release
	}
	return emu
}

// ServerExited is the error with which an env-server's end reaches a plugin.
func ServerExited(code int64, tail ...string) error {
	return &abi.EnvError{
		Status: abi.ServerExited, Source: "server", Kind: "exited", Message: "the env-server's process has ended",
		Server: &abi.ServerFacts{Generation: 1, Code: &code, UptimeS: 1.5, Log: "logs/server.log", Tail: tail},
	}
}

// PeerError is the error with which an env-server's own failure reaches a plugin.
func PeerError(message string) error {
	return &abi.EnvError{Status: abi.PeerFailed, Source: "server", Kind: "peer_error", Message: message}
}

// asEnvError is how an error of Host.Env reaches the plugin.
func asEnvError(err error) *abi.EnvError {
	var e *abi.EnvError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled):
		return &abi.EnvError{Status: abi.Cancelled, Source: "cancelled", Kind: "caller", Message: "cancelled"}
	}
	return &abi.EnvError{Status: abi.Internal, Source: "host", Kind: "internal", Message: err.Error()}
}
