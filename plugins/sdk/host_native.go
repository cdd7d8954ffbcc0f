//go:build !wasip1

package sdk

import (
	"io/fs"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Emulator plays the host for a native build, import by import, with the statuses of the ABI. A nil
// function is an import that is denied. See package sdktest for a ready one.
type Emulator struct {
	LogEnabled func(level int32) bool
	Log        func(level int32, msg string)
	Fail       func(text string)
	Asset      func(name string) ([]byte, bool)
	Dataset    func(name string) fs.FS // nil: not granted

	EnvStart  func(req []byte) int32
	EnvAwait  func(timeoutMS int32) int32
	EnvPoll   func(handle int32) int32
	EnvCancel func(handle int32) int32
	EnvTake   func(handle int32) ([]byte, int32) // bytes, or a negative status
	EnvClose  func(handle int32) int32
}

// emulator is the host of a native build.
var emulator Emulator

// Emulate makes e the host and calls what wevalr_call calls in the module: the registered plugin's
// op. Native builds only, one call at a time.
func Emulate(e Emulator, op abi.Op, request []byte) (response []byte) {
	before := emulator
	emulator = e
	defer func() { emulator = before }()
	return serve(registered, op, request, nil)
}

func hostLogEnabled(level int32) bool {
	return emulator.LogEnabled != nil && emulator.LogEnabled(level)
}

func hostLog(level int32, msg []byte) {
	if emulator.Log != nil {
		emulator.Log(level, string(msg))
	}
}

func hostFail(text []byte) {
	if emulator.Fail != nil {
		emulator.Fail(string(text))
	}
}

func hostAssetLen(name []byte) int32 { return hostAssetRead(name, nil) }

func hostAssetRead(name, dst []byte) int32 {
	if emulator.Asset == nil {
		return int32(abi.NotFound)
	}
	b, ok := emulator.Asset(string(name))
	if !ok {
		return int32(abi.NotFound)
	}
	if len(b) <= len(dst) {
		copy(dst, b)
	}
	return int32(len(b))
}

func hostEnvStart(req []byte) int32 {
	if emulator.EnvStart == nil {
		return int32(abi.Denied)
	}
	return emulator.EnvStart(req)
}

func hostEnvAwait(timeoutMS int32) int32 { return envCall(emulator.EnvAwait, timeoutMS) }
func hostEnvPoll(handle int32) int32     { return envCall(emulator.EnvPoll, handle) }
func hostEnvCancel(handle int32) int32   { return envCall(emulator.EnvCancel, handle) }
func hostEnvClose(handle int32) int32    { return envCall(emulator.EnvClose, handle) }

func envCall(f func(int32) int32, arg int32) int32 {
	if f == nil {
		return int32(abi.Denied)
	}
	return f(arg)
}

func hostEnvTake(handle int32, dst []byte) int32 {
	if emulator.EnvTake == nil {
		return int32(abi.Denied)
	}
	b, status := emulator.EnvTake(handle)
	if status < 0 {
		return status
	}
	if len(b) <= len(dst) {
		copy(dst, b)
	}
	return int32(len(b))
}

// Dataset is the read-only tree that the operator granted as fs.NAME. Without the grant, opening a
// file fails.
func Dataset(name string) fs.FS {
	if emulator.Dataset != nil {
		if fsys := emulator.Dataset(name); fsys != nil {
			return fsys
		}
	}
	return denied{}
}

// denied is a dataset that was not granted.
type denied struct{}

func (denied) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}
