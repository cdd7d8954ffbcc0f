package plugin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/hostile"
)

// FuzzLoad mutates modules: whatever loads also runs within its limits, whatever does not is refused with a
// failure of its own.
func FuzzLoad(f *testing.F) {
	for _, m := range hostile.Modules() {
		if len(m.Wasm) < 4096 {
			f.Add(m.Wasm)
		}
	}
	e := newEngine(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 64<<10 {
			return
		}
		begin := time.Now()
		defer func() {
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		}()
		p, err := e.Load(context.Background(), Spec{Source: source(t, b), Limits: Limits{
			Fuel: 100_000, MemoryMiB: 16, ScoreWall: 5 * time.Second, CallWall: 5 * time.Second,
		}})
		if err == nil {
			_, err = p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"})
			if closeErr := p.Close(context.Background()); closeErr != nil {
				t.Error(closeErr)
			}
		}
		if err == nil {
			return
		}
		if fail := failure.Of(err); fail.Kind == "" || fail.Kind == "internal" || fail.Kind == "deadline" {
			t.Errorf("got %s/%s: %v", fail.Source, fail.Kind, err)
		}
	})
}

// FuzzAnswer gives the host any answer to any question.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		score("1"), `{"err":{"code":"c","data":{"a":[1,{}]}}}`, `{"ok":{"tasks":[{"key":"a","data":{"x":1}}],"next":"n"}}`,
		`{"ok":{"episodes":[1],"selected":0,"scores":[{"name":"any","value":null,"metadata":{"a":1e3}}]}}`,
		"\x81\xa2ok\x81\xa6scores\x91\x82\xa4name\xa3any\xa5value\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00",
		"\x81\xa2ok\x81\xa5tasks\x91\x82\xa3key\xa1a\xa4data\x81\xa1x\xc4\x01a",
	} {
		f.Add(s[0] != '{', []byte(s))
	}
	p := loadGuest(f, &guest{})
	c := &call{p: p, env: newEnvTable(&fakeEnv{f: ok}, abi.EncodingJSON, Grants{Env: &EnvGrant{}})}
	f.Fuzz(func(t *testing.T, packed bool, b []byte) {
		enc := abi.EncodingJSON
		if packed {
			enc = abi.EncodingMsgpack
		}
		e, err := decodeEnvelope(enc, b)
		if err != nil {
			return
		}
		if e.err != nil {
			if msg := p.guestError(abi.OpScore, e.err).Error(); msg != scrub(msg) {
				t.Errorf("not scrubbed: %q", msg)
			}
			return
		}
		var scores abi.ScoreResponse
		if decode(enc, e.ok, &scores) == nil && p.checkScores(abi.OpScore, p.manifest.scorer("any"), scores.Scores) == nil {
			// What passes can be stored and read by anybody.
			if _, err := encode(abi.EncodingJSON, scores); err != nil {
				t.Error(err)
			}
		}
		var tasks abi.TasksResponse
		if decode(enc, e.ok, &tasks) == nil {
			for i := range tasks.Tasks {
				if p.checkTask(&tasks.Tasks[i]) == nil {
					if _, err := encode(abi.EncodingJSON, tasks.Tasks[i]); err != nil {
						t.Error(err)
					}
				}
			}
		}
		var rollout abi.RolloutResponse
		if decode(enc, e.ok, &rollout) == nil {
			_, _ = p.checkRollout(c, rollout)
		}
	})
}

// FuzzImports calls every function that a guest can import, with any arguments on any memory.
func FuzzImports(f *testing.F) {
	for i := range wasiFuncs() {
		f.Add(byte(i), []byte{1, 2, 3, 4, 5, 6, 7, 8}, []byte("in\x00../in"))
	}
	g := driver()
	g.Manifest += "fs = { dataset = {} }\n"
	p := load(f, newEngine(f), Spec{
		Source: source(f, g.Bytes()),
		Grants: Grants{Env: &EnvGrant{}, FS: map[string]string{"dataset": dataset(f)}},
	})
	in, err := p.spawn(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(in.close)
	f.Fuzz(func(t *testing.T, first byte, args, memory []byte) {
		if ok, err := p.image.put(context.Background(), in, p.image.size()); !ok || err != nil {
			t.Fatal("cannot be put back", err)
		}
		in.mod.Memory().Write(0, memory[:min(len(memory), pageSize)])
		table := newEnvTable(&fakeEnv{f: ok}, abi.EncodingJSON, p.grants)
		defer table.end()
		c := p.newCall(abi.OpRollout, 0)
		c.env, c.start = table, func(raw []byte) int32 { return table.start(context.Background(), raw) }
		_, err := in.guarded(context.Background(), c, func(ctx context.Context) error {
			c.active = true
			for i := 0; i < 8 && i == 0 || len(args) > 8; i++ {
				stack := make([]uint64, 9)
				for k := range stack {
					var word [8]byte
					// Small numbers: descriptors, handles, places in the memory.
					n := copy(word[:1+k%3], args)
					args = args[n:]
					stack[k] = binary.LittleEndian.Uint64(word[:])
					if word[0] == 0xff {
						stack[k] = ^uint64(0)
					}
				}
				call1(ctx, t, in, int(first)+i, stack)
			}
			return nil
		})
		if err != nil && failure.Of(err).Kind == "internal" {
			t.Error(err)
		}
	})
}

// call1 calls one import. Panics that end a call are the way of a call to end; the engine's own are not.
func call1(ctx context.Context, t *testing.T, in *instance, i int, stack []uint64) {
	t.Helper()
	defer func() {
		switch r := recover().(type) {
		case nil, *sys.ExitError, *pointerError:
		case runtime.Error:
			panic(r)
		case error:
			if !errors.Is(r, errFuel) {
				panic(fmt.Sprint("a panic of another kind: ", r))
			}
		default:
			panic(r)
		}
	}()
	ours, theirs := hostImports(), wasiFuncs()
	if i %= len(ours) + len(theirs); i < len(theirs) {
		theirs[i].invoke(ctx, in.mod, stack)
		return
	}
	h := ours[i-len(theirs)]
	if h.name == "env_await" {
		stack[0] &= 1 // no minutes
	}
	h.invoke(ctx, in.mod, stack)
}
