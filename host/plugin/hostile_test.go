package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/hostile"
)

// TestHostile runs the kit. After each module a plugin beside it scores as before, and nothing is left:
// goroutines, cores, bytes, idle instances.
func TestHostile(t *testing.T) {
	e := newEngine(t)
	good := load(t, e, Spec{Alias: "good", Source: source(t, scoring(score("0.5")).Bytes())})
	for _, m := range hostile.Modules() {
		t.Run(m.Name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			attempt(t, e, m)
			if got := scoreOf(t, good, "any", abi.Task{}, ""); got != 0.5 {
				t.Errorf("the other plugin scores %v, want 0.5", got)
			}
			nothingLeft(t, e, before)
		})
	}
}

func attempt(t *testing.T, e *Engine, m hostile.Module) {
	t.Helper()
	spec := Spec{Alias: "bad", Source: source(t, m.Wasm), Limits: Limits{Fuel: hostile.Fuel}}
	if m.Op == abi.OpRollout {
		spec.Grants.Env = &EnvGrant{Sampling: []string{"temperature"}}
		spec.Limits.Fuel = hostile.Fuel / callFuel
	}
	if m.Folder {
		dir := dataset(t)
		spec.Grants.FS = map[string]string{"dataset": dir}
		before := contents(t, dir)
		defer func() {
			if after := contents(t, dir); after != before {
				t.Errorf("the folder was\n%sand is\n%s", before, after)
			}
		}()
	}
	begin := time.Now()
	p, err := e.Load(context.Background(), spec)
	o := outcome(t, err, "", time.Since(begin))
	if err := m.Loading(o); err != nil {
		t.Error(err)
	}
	if err != nil {
		return
	}
	defer func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var first hostile.Outcome
	for i := range 3 {
		begin := time.Now()
		answer, err := callHostile(p, m.Op)
		o := outcome(t, err, answer, time.Since(begin))
		if i == 0 {
			first = o
		}
		if err := m.Call(o, first); err != nil {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
}

func outcome(t *testing.T, err error, answer string, took time.Duration) hostile.Outcome {
	t.Helper()
	o := hostile.Outcome{Text: answer, Took: took}
	if err != nil {
		f := failure.Of(err)
		if f.Source != failure.Plugin {
			t.Errorf("got %s/%s (%v), want a failure of the plugin", f.Source, f.Kind, err)
		}
		o.Kind, o.Text = f.Kind, err.Error()
	}
	if a, ok := errors.AsType[*ABIError](err); ok {
		o.Step = a.Step
	}
	return o
}

// callHostile gives the scores and the fuel as text.
func callHostile(p *Plugin, op abi.Op) (string, error) {
	var res any
	var err error
	switch op {
	case abi.OpRollout:
		res, err = p.Rollout(context.Background(), abi.RolloutRequest{}, &fakeEnv{f: ok})
	case abi.OpTasks:
		err = p.Tasks(context.Background(), func(abi.Task) error { return nil })
	default:
		var r Result
		r, err = p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"})
		r.Took = 0
		res = r
	}
	b, _ := json.Marshal(res)
	return string(b), err
}

func dataset(t testing.TB) string {
	t.Helper()
	dir, err := hostile.Folder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// contents is what a folder holds, times included.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		text, _ := os.ReadFile(path)
		fmt.Fprintln(&b, path, st.Mode(), st.Size(), st.ModTime(), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func nothingLeft(t *testing.T, e *Engine, goroutines int) {
	t.Helper()
	e.slabs.pending.Wait()
	var kept int64 // memories without an instance, cleared
	for _, s := range e.slabs.kept {
		kept += int64(s.had)
	}
	for _, s := range []struct {
		name string
		held func() bool
	}{
		{"memories", func() bool { return len(e.slabs.kept) > e.nCores }},
		{"cores", func() bool {
			ok := e.cores.TryAcquire(int64(e.nCores))
			if ok {
				e.cores.Release(int64(e.nCores))
			}
			return !ok
		}},
		{"bytes", func() bool {
			ok := e.bytes.TryAcquire(e.opt.InstanceBytes)
			if ok {
				e.bytes.Release(e.opt.InstanceBytes)
			}
			return !ok
		}},
		{"idle instances", func() bool { return e.idle.Load()-kept > 4<<20 }}, // the good plugin's
		{"goroutines", func() bool {
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); runtime.Gosched() {
				if runtime.NumGoroutine() <= goroutines {
					return false
				}
			}
			return true
		}},
	} {
		if s.held() {
			t.Errorf("%s are left", s.name)
		}
	}
}
