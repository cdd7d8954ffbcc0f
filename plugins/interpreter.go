package plugins

import "embed"

// Interpreter is what the interpreter of scripted plugins is built from, where wevalr does not carry it
// prebuilt; the command is in script.
//
//go:embed abi/*.go sdk/codec/*.go script/*.go script/star/*.go
var Interpreter embed.FS

// OtherSDKs are the SDKs of other languages than Go, at the paths that they have here.
//
//go:embed sdk/c/wevalr.h sdk/assemblyscript/assembly/wevalr.ts sdk/rust/src/*.rs
var OtherSDKs embed.FS

// InterpreterMod and InterpreterSum are go.mod and go.sum of the module that the interpreter is built in: the
// go line and the dependency are those of wevalr's own go.mod, so that the bytes are the same as in a
// checkout.
const (
	InterpreterMod = `module github.com/wevalr/wevalr

go 1.26.0

require go.starlark.net v0.0.0-20260908191801-89a6a09411d5
`
	InterpreterSum = `go.starlark.net v0.0.0-20260908191801-89a6a09411d5 h1:X8HyonnLxrmAbdeMIEGEJVZ/yg6WykLZyAZmpCLSfMA=
go.starlark.net v0.0.0-20260908191801-89a6a09411d5/go.mod h1:Iue6g6iirlfLoVi/DYCi5/x0h/bAOuWF3dULTKpt2Vo=
`
)
