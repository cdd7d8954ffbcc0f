// Package plugins holds the sources of the ABI and the SDKs, as `wevalr plugin new` copies them beside a new
// plugin: an author needs no more than the wevalr binary, and what they get is what this repository uses.
//
// The plugins themselves are the folders: each is a program of its own.
package plugins

import "embed"

// GoSDK is what a plugin in Go is built with, tests included, at the paths that it has here.
//
//go:embed abi/*.go sdk/*.go sdk/codec/*.go sdk/json/*.go sdk/sdktest/*.go
var GoSDK embed.FS
