package hostile

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/wasm"
)

type (
	guest    = wasm.Guest
	imported = wasm.Import
	function = wasm.Func
)

const (
	dataAt, bufAt, roomAt = wasm.DataAt, wasm.BufAt, wasm.RoomAt
	i32, i64, f32, f64    = wasm.I32, wasm.I64, wasm.F32, wasm.F64
)

const scorerManifest = wasm.ScorerManifest

const taskManifest = `provides = ["task/v1"]
`

const driverManifest = `provides = ["rollout/v1"]
[capabilities]
env = { methods = ["run"], sampling = ["temperature"] }
`

const folderManifest = `[capabilities]
fs = { dataset = {} }
`

// Instructions.

func op(b ...byte) []byte             { return b }
func cat(parts ...[]byte) []byte      { return slices.Concat(parts...) }
func repeat(n int, b []byte) []byte   { return bytes.Repeat(b, n) }
func i32c(v int32) []byte             { return wasm.I32Const(v) }
func i64c(v int64) []byte             { return wasm.I64Const(v) }
func call(i byte, args ...any) []byte { return wasm.Call(i, args...) }
func expect(v int32) []byte           { return wasm.Expect(v) }
func forever(b []byte) []byte         { return wasm.Forever(b) }
func unreachable() []byte             { return op(0x00) }
func drop() []byte                    { return op(0x1a) }

// env is a function of the ABI; its type is as in [wasm.FuncType], the result an i32.
func env(name, params string) imported {
	return imported{Module: abi.Module, Name: name, Params: params, Results: "i"}
}

// wasi is a function of WASI, whose result is an i32.
func wasi(name, params string) imported {
	return imported{Module: "wasi_snapshot_preview1", Name: name, Params: params, Results: "i"}
}

// load is the i32 at an address.
func load(at int32) []byte { return cat(i32c(at), op(0x28, 2, 0)) }

// store puts an i32 at an address.
func store(at, v int32) []byte { return cat(i32c(at), i32c(v), op(0x36, 2, 0)) }

// global is a mutable global of a type with its first value.
func global(typ byte, init []byte) []byte { return cat([]byte{typ, 1}, init, op(0x0b)) }

func score(value string) string {
	return fmt.Sprintf(`{"ok":{"scores":[{"name":"any","value":%s}]}}`, value)
}

// good is the body that answers with a score.
func good(g *guest) []byte { return g.Answer(score("1")) }

func answering(text string) *guest { return wasm.Answering(text) }
