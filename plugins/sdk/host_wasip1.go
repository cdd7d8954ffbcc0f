package sdk

import (
	"io/fs"
	"os"
	"runtime"
	"unsafe"
)

//go:wasmimport wevalr_v1 log_enabled
func importLogEnabled(level int32) int32

//go:wasmimport wevalr_v1 log
func importLog(level int32, ptr unsafe.Pointer, n uint32) int32

//go:wasmimport wevalr_v1 fail
func importFail(ptr unsafe.Pointer, n uint32) int32

//go:wasmimport wevalr_v1 asset_len
func importAssetLen(namePtr unsafe.Pointer, nameLen uint32) int32

//go:wasmimport wevalr_v1 asset_read
func importAssetRead(namePtr unsafe.Pointer, nameLen uint32, ptr unsafe.Pointer, n uint32) int32

//go:wasmimport wevalr_v1 env_start
func importEnvStart(ptr unsafe.Pointer, n uint32) int32

//go:wasmimport wevalr_v1 env_await
func hostEnvAwait(timeoutMS int32) int32

//go:wasmimport wevalr_v1 env_poll
func hostEnvPoll(handle int32) int32

//go:wasmimport wevalr_v1 env_cancel
func hostEnvCancel(handle int32) int32

//go:wasmimport wevalr_v1 env_take
func importEnvTake(handle int32, ptr unsafe.Pointer, n uint32) int32

//go:wasmimport wevalr_v1 env_close
func hostEnvClose(handle int32) int32

func data(b []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))
}

func hostLogEnabled(level int32) bool { return importLogEnabled(level) > 0 }

func hostLog(level int32, msg []byte) {
	ptr, n := data(msg)
	importLog(level, ptr, n)
	runtime.KeepAlive(msg)
}

func hostFail(text []byte) {
	ptr, n := data(text)
	importFail(ptr, n)
	runtime.KeepAlive(text)
}

func hostAssetLen(name []byte) int32 {
	ptr, n := data(name)
	got := importAssetLen(ptr, n)
	runtime.KeepAlive(name)
	return got
}

func hostAssetRead(name, dst []byte) int32 {
	namePtr, nameLen := data(name)
	ptr, n := data(dst)
	got := importAssetRead(namePtr, nameLen, ptr, n)
	runtime.KeepAlive(name)
	runtime.KeepAlive(dst)
	return got
}

func hostEnvStart(req []byte) int32 {
	ptr, n := data(req)
	got := importEnvStart(ptr, n)
	runtime.KeepAlive(req)
	return got
}

func hostEnvTake(handle int32, dst []byte) int32 {
	ptr, n := data(dst)
	got := importEnvTake(handle, ptr, n)
	runtime.KeepAlive(dst)
	return got
}

// Dataset is the read-only tree that the operator granted as fs.NAME. Without the grant, opening a
// file fails.
func Dataset(name string) fs.FS { return os.DirFS("/data/" + name) }
