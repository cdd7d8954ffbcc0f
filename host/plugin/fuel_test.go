package plugin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/wasm"
)

// A budget is exact: one unit less than a call burns, and it fails.
func TestScore_FuelIsExact(t *testing.T) {
	g := &guest{}
	g.Body = cat(slices.Repeat(cat(i32c(1), drop()), 100), g.Answer(score("1")))
	file := source(t, g.Bytes())
	e := newEngine(t)
	ask := func(fuel uint64) (Result, error) {
		return load(t, e, Spec{Source: file, Limits: Limits{Fuel: fuel}}).Score(context.Background(), abi.ScoreRequest{Scorer: "any"})
	}
	res, err := ask(0)
	if err != nil || res.Fuel < 200 {
		t.Fatalf("got %+v, %v", res, err)
	}
	if again, err := ask(res.Fuel); err != nil || again.Fuel != res.Fuel {
		t.Errorf("with a budget of what it burns: got %+v, %v, want fuel %d", again, err, res.Fuel)
	}
	var limit *LimitError
	if _, err := ask(res.Fuel - 1); !errors.As(err, &limit) || limit.Kind != "fuel" {
		t.Errorf("with a unit less: got %v, want a LimitError of kind fuel", err)
	}
}

func TestLimits_Resolve(t *testing.T) {
	for _, tc := range []struct {
		wish       string
		cap, fuel  uint64
		score, all time.Duration
	}{
		{"", 0, defaultFuel, 8 * time.Second, 120 * time.Second},
		{"500M", 0, 500e6, 8 * time.Second, 120 * time.Second},
		{"6G", 0, 6e9, 24 * time.Second, 360 * time.Second},
		{"100G", 0, fuelCap, 80 * time.Second, 1200 * time.Second},
		{"100G", 1e12, 100e9, 400 * time.Second, 6000 * time.Second},
		{"6G", 1e9, 1e9, 8 * time.Second, 120 * time.Second},
		{"", 1e9, 1e9, 8 * time.Second, 120 * time.Second},
	} {
		got := Limits{Fuel: tc.cap}.resolve(&ManifestLimits{Fuel: tc.wish})
		if got.Fuel != tc.fuel || got.ScoreWall != tc.score || got.CallWall != tc.all {
			t.Errorf("%q capped by %d: got %+v, want %+v", tc.wish, tc.cap, got, tc)
		}
	}
	for text, n := range map[string]uint64{"2G": 2e9, "1500M": 15e8, "7": 7, "20K": 20e3} {
		if got := FormatFuel(n); got != text {
			t.Errorf("FormatFuel(%d) = %s, want %s", n, got, text)
		}
	}
}

// A call that has been stopped before it began does not begin.
func TestImage_Put_Stopped(t *testing.T) {
	p := loadGuest(t, scoring(score("1")))
	in, err := p.spawn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errDeadline)
	if ok, err := p.image.put(ctx, in, p.image.size()); ok || !errors.Is(err, errDeadline) {
		t.Errorf("got %v, %v, want the cause", ok, err)
	}
}

// What init cleared of the module's own data is cleared in new instances, too, which come with it.
func TestImage_Put_ClearedData(t *testing.T) {
	g := &guest{}
	answer := func(text string) []byte { // from where _initialize moves it
		ptr, n := g.Put(text)
		return i64c(int64(ptr-dataAt+roomAt)<<32 | int64(n))
	}
	g.Init, g.Body = answer(`{"ok":{}}`), cat(i32c(dataAt), op(0x2d, 0, 0), expect(0), answer(score("1")))
	g.Start = cat(i32c(roomAt), i32c(dataAt), i32c(4096), op(0xfc, 0x0a, 0, 0), i32c(0), i32c(0), i32c(bufAt), op(0xfc, 0x0b, 0))
	p := loadGuest(t, g)
	if p.written != bufAt || p.image.pages[0] != nil {
		t.Fatalf("%d bytes come with an instance, want a page, which init cleared", p.written)
	}
	p.pool.drain(p.engine)
	if got := scoreOf(t, p, "any", abi.Task{}, ""); got != 1 {
		t.Errorf("scored %v", got)
	}
}

// A call's clock starts when it has a core: a burst of scores that wait for each other fails none of them.
func TestScore_ClockStartsOnCore(t *testing.T) {
	e := newEngine(t)
	p := load(t, e, Spec{Source: source(t, scoring(score("1")).Bytes()), Limits: Limits{ScoreWall: time.Second}})
	synctest.Test(t, func(t *testing.T) {
		all := int64(e.nCores)
		if err := e.cores.Acquire(context.Background(), all); err != nil {
			t.Fatal(err)
		}
		const calls = 20
		done := make(chan error, calls)
		for range calls {
			go func() {
				_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"})
				done <- err
			}()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(done) > 0 || inGuest(p) {
			t.Error("a call runs without a core")
		}
		e.cores.Release(all)
		for range calls {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// What takes the host longer burns more: or a flood of it would end by the clock, each time elsewhere.
func TestFuel_OfFiles(t *testing.T) {
	dir := dataset(t)
	if err := os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		writeFile(t, dir, fmt.Sprintf("a/b/%d", i), "x")
	}
	wasiImport := func(name, params string) guestImport {
		return guestImport{Module: wasi, Name: name, Params: params, Results: "i"}
	}
	for _, tc := range []struct {
		name, path string
		body       []byte
		least      uint64
	}{
		{"open", "in", nil, 2 * fileCall},
		{"open far below", "a/b/c", nil, 4 * fileCall},
		{"read", "in", cat(i32c(bufAt), i32c(roomAt), op(0x36, 2, 0), i32c(bufAt+4), i32c(1), op(0x36, 2, 0), callImport(1, 4, bufAt, 1, int64(0), roomAt+64)), 3 * fileCall},
		{"size", "in", callImport(2, 4, roomAt), 3 * fileCall},
		{"end", "in", callImport(3, 4, int64(0), 2, roomAt), 3 * fileCall},
		{"list", "a/b", callImport(4, 4, roomAt, 100, int64(0), roomAt+128), (3 + 3 + 2 + 11) * fileCall},
		{"status", "a/b", callImport(5, 3, 0, dataAt, 3, roomAt), 6 * fileCall},
	} {
		g := &guest{Manifest: scorerManifest + "[capabilities]\nfs = { dataset = {} }\n", Imports: []guestImport{
			wasiImport("path_open", "iiiiiIIii"), wasiImport("fd_pread", "iiiIi"), wasiImport("fd_filestat_get", "ii"),
			wasiImport("fd_seek", "iIii"), wasiImport("fd_readdir", "iiiIi"), wasiImport("path_filestat_get", "iiiii"),
		}}
		path, n := g.Put(tc.path)
		g.Body = cat(callImport(0, 3, 1, path, n, 0, int64(2), int64(0), 0, roomAt), expect(0))
		if tc.body != nil {
			g.Body = cat(g.Body, tc.body, expect(0))
		}
		g.Body = cat(g.Body, g.Answer(score("1")))
		p := loadGuest(t, g, func(s *Spec) { s.Grants.FS = map[string]string{"dataset": dir} })
		res, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "any"})
		if err != nil || res.Fuel < tc.least || res.Fuel >= tc.least+fileCall {
			t.Errorf("%s: %d units, %v, want %d and a few", tc.name, res.Fuel, err, tc.least)
		}
	}
}

func TestFuel_OfFail(t *testing.T) {
	g := &guest{Imports: []guestImport{env("fail", 2)}}
	ptr, n := g.Put(long(2 * maxFailText))
	g.Body = wasm.Forever(cat(callImport(0, ptr, n), drop()))
	p := loadGuest(t, g, func(s *Spec) { s.Limits.Fuel = 4_000_000 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := p.Score(context.Background(), abi.ScoreRequest{Scorer: "correct"})
	runtime.ReadMemStats(&after)
	checkFailure(t, err, "fuel", "")
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 16 {
		t.Errorf("a flood of texts took %d MiB of the host's memory, want hardly any", took)
	}
}

func TestRing(t *testing.T) {
	r := ring{max: 1 << 20}
	all := strings.Repeat("0123456789", r.max/4)
	most := 0
	for i := range len(all) {
		_, _ = r.Write([]byte(all[i : i+1]))
		most = max(most, len(r.buf))
	}
	if most < 2*r.max {
		t.Errorf("what is kept was moved at %d bytes, want that seldom: at %d", most, 2*r.max)
	}
	if got := r.text(); got != "…"+all[len(all)-r.max:] || len(r.buf) > 2*r.max {
		t.Errorf("%d bytes are kept, %d of them shown, want the last %d", len(r.buf), len(got), r.max)
	}
	r.reset()
	_, _ = r.Write([]byte("short\n"))
	if got := r.text(); got != "short" {
		t.Errorf("got %q", got)
	}
}

// How deep code can recurse on the engine's stack does not depend on how calls before have made it grow.
func TestScore_StackBeginsAnew(t *testing.T) {
	// A function calls itself as often as it is told, with so many vectors on the stack meanwhile.
	frame := func(self byte, vectors int) wasm.Func {
		b := cat(op(0x20, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b), i32c(roomAt))
		for i := range vectors {
			b = cat(b, i32c(int32(roomAt+16*i)), op(0xfd, 0, 0, 0))
		}
		b = cat(b, op(0x20, 0), i32c(1), op(0x6b, 0x10, self), slices.Repeat(op(0xfd, 0xce, 1), vectors-1))
		return wasm.Func{Params: "i", Body: cat(b, op(0xfd, 0x0b, 0, 0))}
	}
	g := &guest{Funcs: []wasm.Func{frame(3, 300), frame(4, 200), frame(5, 100)}}
	for i := range g.Funcs { // a request is the function's number and how often
		g.Body = cat(g.Body, i32c(bufAt), op(0x28, 2, 0), i32c(int32(i)), op(0x46, 0x04, 0x40), i32c(bufAt), op(0x28, 2, 4, 0x10, byte(3+i), 0x0b))
	}
	g.Body = cat(g.Body, g.Answer(score("1")))
	p := loadGuest(t, g)
	goes := func(f, times int) bool {
		req := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(f)), uint32(times))
		_, _, _, err := p.CallRaw(context.Background(), abi.OpScore, req)
		return err == nil
	}
	limit := sort.Search(16_000, func(times int) bool {
		p.pool.drain(p.engine)
		return !goes(0, times)
	})
	for _, before := range [][2]int{{1, 10}, {1, 8000}, {2, 100}, {2, 8000}} {
		p.pool.drain(p.engine)
		if !goes(before[0], before[1]) || !goes(0, limit-1) || goes(0, limit) {
			t.Errorf("after %v the stack holds more or less than %d frames", before, limit)
		}
	}
}
