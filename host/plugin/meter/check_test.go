package meter_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wevalr/wevalr/host/plugin/meter"
)

func refusal(t *testing.T, b []byte, caps meter.Caps) *meter.Refusal {
	t.Helper()
	_, err := meter.Check(b, caps)
	if err == nil {
		return nil
	}
	var r *meter.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got %T %v, want a *Refusal", err, err)
	}
	return r
}

// TestCheck_Caps: each module is over one cap by one, and passes with one more.
func TestCheck_Caps(t *testing.T) {
	const block, end = 0x02, 0x0b
	rep := bytes.Repeat
	one := func() *wasm { return (&wasm{}).memory(1) }
	three := one()
	for _, n := range []string{"a", "b", "c"} {
		three.fn(n, void, void, 0)
	}
	imports, globals, data, elems := one(), one().fn("f", void, void, 0), one().fn("f", void, void, 0), one().table(9).fn("f", void, void, 0)
	imports.Types = [][]byte{op(0x60, 0, 0)}
	for range 3 {
		imports.Imports = append(imports.Imports, cat(str("m"), str("f"), op(0, 0)))
		globals.Globals = append(globals.Globals, op(0x7f, 1, 0x41, 0, end))
		data.Data = append(data.Data, cat(op(0), i32(0), op(end, 0)))
		elems.Elements = append(elems.Elements, cat(op(0), i32(0), op(end, 1, 0)))
	}
	tables := one().table(1).table(1).table(1).fn("f", void, void, 0)
	for name, tc := range map[string]struct {
		w          *wasm
		below, fit meter.Caps
		rule       string
	}{
		"types":     {three, meter.Caps{Types: 2}, meter.Caps{Types: 3}, "type count"},
		"functions": {three, meter.Caps{Functions: 2}, meter.Caps{Functions: 3}, "function count"},
		"exports":   {three, meter.Caps{Exports: 2}, meter.Caps{Exports: 3}, "export count"},
		"imports":   {imports, meter.Caps{Imports: 2}, meter.Caps{Imports: 3}, "import count"},
		"globals":   {globals, meter.Caps{Globals: 2}, meter.Caps{Globals: 3}, "global count"},
		"data":      {data, meter.Caps{Data: 2}, meter.Caps{Data: 3}, "data count"},
		"elements":  {elems, meter.Caps{Elements: 2}, meter.Caps{Elements: 3}, "element count"},
		"inits":     {elems, meter.Caps{Inits: 2}, meter.Caps{Inits: 3}, "element entries"},
		"tables":    {tables, meter.Caps{Tables: 2}, meter.Caps{Tables: 3}, "table count"},
		"entries":   {one().table(100), meter.Caps{Entries: 99}, meter.Caps{Entries: 100}, "table size"},
		"params":    {one().fn("f", oneI, void, 0), meter.Caps{Params: -1}, meter.Caps{Params: 1}, "parameters"},
		"results":   {one().fn("f", void, oneI, 0, i64(1)), meter.Caps{Results: -1}, meter.Caps{Results: 1}, "results"},
		"locals":    {one().fn("f", oneI, void, 4), meter.Caps{Locals: 4}, meter.Caps{Locals: 5}, "locals"},
		"depth": {
			one().fn("f", void, void, 0, rep(op(block, 0x40), 5), rep(op(end), 5)),
			meter.Caps{Depth: 4},
			meter.Caps{Depth: 5},
			"nesting",
		},
		"blocks": {
			one().fn("f", void, void, 0, rep(op(block, 0x40, end), 5)),
			meter.Caps{Blocks: 4},
			meter.Caps{Blocks: 5},
			"blocks",
		},
		"br_table": {
			one().fn("f", void, void, 0, i32(0), op(0x0e, 3, 0, 0, 0, 0)),
			meter.Caps{BrTable: 2},
			meter.Caps{BrTable: 3},
			"br_table",
		},
		"body":               {one().fn("f", void, void, 0, rep(op(1), 98)), meter.Caps{Body: 99}, meter.Caps{Body: 100}, "function size"},
		"cost":               {three, meter.Caps{Cost: 20_000}, meter.Caps{Cost: 40_000}, "compile cost"},
		"cost of a function": {three, meter.Caps{FuncCost: 5_000}, meter.Caps{FuncCost: 20_000}, "compile cost"},
		"size":               {three, meter.Caps{Bytes: 10}, meter.Caps{Bytes: 1000}, "size"},
	} {
		r := refusal(t, tc.w.Bytes(), tc.below)
		switch {
		case r == nil:
			t.Errorf("%s: not refused", name)
		case r.Rule != tc.rule || r.Saw == "" || r.Limit == "" || r.Remedy == "" || r.Section == "":
			t.Errorf("%s: got %+v, want rule %q with what was seen, limit and remedy", name, r, tc.rule)
		}
		if r := refusal(t, tc.w.Bytes(), tc.fit); r != nil {
			t.Errorf("%s: got %v of what fits", name, r)
		}
	}
}

// TestCheck_Policy: what a guest may not bring, and modules that are made to hurt.
func TestCheck_Policy(t *testing.T) {
	plain := func() *wasm { return (&wasm{}).memory(1).fn("f", void, void, 0) }
	start := plain()
	start.Start = u(0)
	imported := func(desc ...byte) *wasm {
		w := plain()
		w.Imports = [][]byte{cat(str("m"), str("x"), desc)}
		return w
	}
	badType := plain()
	badType.Funcs = [][]byte{u(95)}
	deep := (&wasm{}).memory(1).fn("f", void, void, 0, op(0x0c, 1))
	local := (&wasm{}).memory(1).fn("f", oneI, void, 2, op(0x20, 3, 0x1a))
	unclosed := (&wasm{}).memory(1).fn("f", void, void, 0, op(0x02, 0x40))
	twice := plain().Bytes()
	twice = append(twice, 1, 1, 0) // a type section without types
	locals := (&wasm{}).memory(1).fn("f", void, void, 130_000_000)
	for name, tc := range map[string]struct {
		b    []byte
		rule string
	}{
		"start function":  {start.Bytes(), "start function"},
		"memory import":   {imported(2, 0, 1).Bytes(), "memory import"},
		"table import":    {imported(1, 0x70, 0, 1).Bytes(), "table import"},
		"global import":   {imported(3, 0x7f, 0).Bytes(), "global import"},
		"no memory":       {(&wasm{}).fn("f", void, void, 0).Bytes(), "memory count"},
		"two memories":    {plain().memory(1).Bytes(), "memory count"},
		"reserved export": {plain().fn("wevalr:x", void, void, 0).Bytes(), "export name"},
		"130 M locals":    {locals.Bytes(), "locals"},
		"type index":      {badType.Bytes(), "type index"},
		"label":           {deep.Bytes(), "label"},
		"local":           {local.Bytes(), "local index"},
		"unclosed block":  {unclosed.Bytes(), "length"},
		"section twice":   {twice, "section order"},
		"not a module":    {[]byte("#!/bin/sh"), "header"},
		"empty":           {nil, "header"},
		"cut short":       {plain().Bytes()[:20], "length"},
		// https://github.com/tetratelabs/wazero v1.12.0 panics in the caller of CompileModule.
		"30 bytes": {unhex("0061736d01000000010401600000030302005f0a0902040010010b02000b"), "type index"},
		"4 G types": {
			unhex("0061736d010000000105ffffffff0f"), "type count",
		},
	} {
		if r := refusal(t, tc.b, meter.Caps{}); r == nil || r.Rule != tc.rule {
			t.Errorf("%s: got %v, want rule %q", name, r, tc.rule)
		}
	}
	if r := refusal(t, plain().Bytes(), meter.Caps{}); r != nil {
		t.Errorf("got %v of a plain module", r)
	}
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// TestCheck_CompileBombs: within every cap of a function, many of them are too much.
func TestCheck_CompileBombs(t *testing.T) {
	for name, w := range much() {
		if r := refusal(t, w.memory(1).Bytes(), meter.Caps{}); r != nil {
			t.Errorf("%s: one is refused: %v", name, r)
		}
		switch name {
		case "many functions", "values on the stack", "straight": // cheap, however many
			continue
		}
		f := w.Code[0]
		for range min(3_000, 30<<20/len(f)) {
			w.Code, w.Funcs = append(w.Code, f), append(w.Funcs, w.Funcs[0])
		}
		if r := refusal(t, w.Bytes(), meter.Caps{}); r == nil || r.Rule != "compile cost" {
			t.Errorf("%s: got %v, want it refused for its cost", name, r)
		}
	}
}

// TestCheck_CompileBombs_OneFunction: a function of less than 200 KB takes the engine minutes, or gigabytes.
func TestCheck_CompileBombs_OneFunction(t *testing.T) {
	for name, w := range map[string]*wasm{
		"values over blocks": values(20_000, 2_000),
		"truncations":        truncations(60_000),
		"table.fill":         busyWith(4_000, 600, cat(i32(0), op(0xd0, 0x70), i32(1), op(0xfc, 17, 0))).table(1),
	} {
		if r := refusal(t, w.memory(1).Bytes(), meter.Caps{}); r == nil || r.Rule != "compile cost" {
			t.Errorf("%s: got %v, want it refused for its cost", name, r)
		}
	}
	// 16 values, 40,000 times: half a second.
	if r := refusal(t, passing(20_000).memory(1).Bytes(), meter.Caps{Cost: 500e6}); r == nil || r.Rule != "compile cost" {
		t.Errorf("values of calls: got %v, want it refused for its cost", r)
	}
}

// TestCheck_Heights: the values on the stack, on which the estimate depends, are counted right.
func TestCheck_Heights(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(fromWazero(t, specDir), "*.wasm"))
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, engines()["interpreter"])
	defer func() { _ = rt.Close(ctx) }()
	blocks := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.CompileModule(ctx, b); err != nil {
			continue // not valid, on purpose
		}
		wrong, of := meter.WrongHeights(b)
		if blocks += of; wrong > 0 {
			t.Errorf("%s: %d of %d blocks end with another number of values than they have results", filepath.Base(f), wrong, of)
		}
	}
	if blocks < 1_000 {
		t.Errorf("%d blocks of %d modules", blocks, len(files))
	}
}

func TestCheck_Info(t *testing.T) {
	w := &wasm{}
	w.Imports, w.Types = [][]byte{cat(str("m"), str("f"), op(0, 0))}, [][]byte{op(0x60, 2, 0x7f, 0x7e, 1, 0x7d)}
	w.Globals = [][]byte{op(0x7f, 1, 0x41, 0, 0x0b), op(0x7f, 0, 0x41, 0, 0x0b), op(0x70, 1, 0xd0, 0x70, 0x0b)}
	w.Memories = [][]byte{op(1, 2, 9)}
	w.table(1).fn("g", void, oneI, 0, i32(0), op(0xd0, 0x70, 0x26, 0), i64(1))
	info, err := meter.Check(w.Bytes(), meter.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	im, ex := info.Imports[0], info.Exports[0]
	if im.Module != "m" || im.Name != "f" || len(im.Type.Params) != 2 || im.Type.Results[0] != meter.F32 {
		t.Errorf("import: got %+v", im)
	}
	if ex.Name != "g" || ex.Kind != meter.KindFunc || ex.Type.Results[0] != meter.I64 {
		t.Errorf("export: got %+v", ex)
	}
	if info.MemoryMin != 2 || info.MemoryMax != 9 || info.Functions != 1 {
		t.Errorf("got %+v", info)
	}
	if len(info.Globals) != 2 || info.Globals[1].Name != "wevalr:g2" || info.Globals[1].Type != meter.FuncRef {
		t.Errorf("globals: got %+v", info.Globals)
	}
	if want := (meter.Seen{Tables: true, Globals: true}); info.Seen != want || info.Seen.Resettable() {
		t.Errorf("got %+v, want %+v", info.Seen, want)
	}
}

func TestRefusal_Error(t *testing.T) {
	for _, r := range []*meter.Refusal{
		{},
		{Section: "code", Offset: 7, Rule: "locals", Saw: "9", Limit: "8", Remedy: "split the function"},
	} {
		if s := r.Error(); !strings.HasPrefix(s, "meter: ") || strings.HasSuffix(s, ": ") {
			t.Errorf("got %q", s)
		}
	}
}
