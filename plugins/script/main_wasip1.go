package main

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"unsafe"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/script/star"
)

//go:wasmimport wevalr_v1 log
func importLog(level int32, ptr unsafe.Pointer, n uint32) int32

//go:wasmimport wevalr_v1 fail
func importFail(ptr unsafe.Pointer, n uint32) int32

//go:wasmimport wevalr_v1 asset_len
func importAssetLen(namePtr unsafe.Pointer, nameLen uint32) int32

//go:wasmimport wevalr_v1 asset_read
func importAssetRead(namePtr unsafe.Pointer, nameLen uint32, ptr unsafe.Pointer, n uint32) int32

// The module's state: its two buffers, kept for its whole life, and its script.
var (
	request  []byte
	response []byte
	guest    = star.Guest{Read: read, Print: func(text string) {
		b := []byte(text)
		importLog(abi.LevelInfo, unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
		runtime.KeepAlive(b)
	}}
)

//go:wasmexport wevalr_abi_1_0
func marker() {}

//go:wasmexport wevalr_buf
func buf(n int32) int32 {
	if n < 0 || n > abi.MaxRequest {
		return 0
	}
	if int(n) > len(request) || request == nil {
		request = nil
		request = make([]byte, max(int(n), 64<<10))
	}
	return int32(uintptr(unsafe.Pointer(unsafe.SliceData(request))))
}

//go:wasmexport wevalr_call
func call(op, n int32) int64 {
	if n < 0 || int(n) > len(request) {
		return 0
	}
	defer func() {
		if v := recover(); v != nil {
			b := []byte("the interpreter panicked")
			if err, ok := v.(error); ok {
				b = append(b, ": "+err.Error()...)
			}
			importFail(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)))
			panic(v)
		}
	}()
	if abi.Op(op) == abi.OpInit {
		guest.Manifest, _ = asset("plugin.toml")
	}
	response = guest.Serve(abi.Op(op), request[:n], response[:0])
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(response))))<<32 | int64(len(response))
}

// read gives an asset, else a file of the dataset.
func read(name string) ([]byte, error) {
	if b, there := asset(name); there {
		return b, nil
	}
	b, err := fs.ReadFile(os.DirFS("/data/dataset"), name)
	if err != nil {
		return nil, errors.New("not an asset, and not a file in the folder granted as fs.dataset")
	}
	return b, nil
}

func asset(name string) (b []byte, there bool) {
	key := []byte(name)
	n := importAssetLen(unsafe.Pointer(unsafe.SliceData(key)), uint32(len(key)))
	if n < 0 {
		return nil, false
	}
	b = make([]byte, n)
	got := importAssetRead(unsafe.Pointer(unsafe.SliceData(key)), uint32(len(key)), unsafe.Pointer(unsafe.SliceData(b)), uint32(n))
	runtime.KeepAlive(key)
	return b, got == n
}
