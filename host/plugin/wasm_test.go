package plugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/testplugins/wasm"
)

type (
	guest       = wasm.Guest
	guestImport = wasm.Import
)

const (
	dataAt, bufAt, roomAt = wasm.DataAt, wasm.BufAt, wasm.RoomAt

	manifestHead   = wasm.ManifestHead + "encoding = \"json\"\n"
	scorerManifest = wasm.ScorerManifest
	driverManifest = `provides = ["rollout/v1", "task/v1"]
[capabilities]
env = { methods = ["run"], sampling = ["temperature"], optional = true }
`
)

// env is a function of the ABI that takes so many i32.
func env(name string, params int) guestImport {
	return guestImport{Module: abi.Module, Name: name, Params: strings.Repeat("i", params), Results: "i"}
}

// Instructions.

func op(b ...byte) []byte                   { return b }
func cat(parts ...[]byte) []byte            { return slices.Concat(parts...) }
func i32c(v int32) []byte                   { return wasm.I32Const(v) }
func i64c(v int64) []byte                   { return wasm.I64Const(v) }
func callImport(i byte, args ...any) []byte { return wasm.Call(i, args...) }
func expect(v int32) []byte                 { return wasm.Expect(v) }
func spin() []byte                          { return wasm.Forever(nil) }
func unreachable() []byte                   { return op(0x00) }
func drop() []byte                          { return op(0x1a) }

func scoring(text string) *guest { return wasm.Answering(text) }

func score(value string) string { return fmt.Sprintf(`{"ok":{"scores":[{"value":%s}]}}`, value) }

func long(n int) string { return strings.Repeat("x", n) }
