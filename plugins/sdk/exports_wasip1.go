package sdk

import (
	"unsafe"

	"github.com/wevalr/wevalr/plugins/abi"
)

// The module's two buffers, kept for its whole life: garbage per call would cost more than the call.
var (
	requestBuf  []byte
	responseBuf []byte
)

//go:wasmexport wevalr_abi_1_0
func wevalrABI() {}

//go:wasmexport wevalr_buf
func wevalrBuf(n int32) int32 {
	if n < 0 || n > abi.MaxRequest {
		return 0
	}
	if int(n) > len(requestBuf) {
		requestBuf = nil
		requestBuf = make([]byte, max(int(n), 64<<10))
	}
	if requestBuf == nil {
		requestBuf = make([]byte, 64<<10)
	}
	return int32(uintptr(unsafe.Pointer(unsafe.SliceData(requestBuf))))
}

//go:wasmexport wevalr_call
func wevalrCall(op, n int32) int64 {
	if n < 0 || int(n) > len(requestBuf) {
		return 0
	}
	responseBuf = serve(registered, abi.Op(op), requestBuf[:n], responseBuf[:0])
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(responseBuf))))<<32 | int64(len(responseBuf))
}
