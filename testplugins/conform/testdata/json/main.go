// Command json is a scorer that leaves everything to encoding/json, as a plugin without the SDK may.
package main

import (
	"encoding/json"
	"strings"
	"unsafe"
)

func main() {}

type request struct {
	Scorer string `json:"scorer"`
	Task   struct {
		Key    string         `json:"key"`
		Target string         `json:"target"`
		Data   map[string]any `json:"data"`
	} `json:"task"`
	Episode struct {
		Completion string `json:"completion"`
		Messages   []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
	} `json:"episode"`
}

type score struct {
	Name  string         `json:"name"`
	Value float64        `json:"value"`
	Meta  map[string]any `json:"metadata"`
}

var in, out []byte

//go:wasmexport wevalr_buf
func buf(n int32) int32 {
	if int(n) > len(in) {
		in = make([]byte, n)
	}
	return int32(uintptr(unsafe.Pointer(unsafe.SliceData(in))))
}

//go:wasmexport wevalr_call
func call(op, n int32) int64 {
	var r request
	if err := json.Unmarshal(in[:n], &r); err != nil {
		panic(err)
	}
	words := strings.Fields(r.Episode.Completion)
	var err error
	out, err = json.Marshal(map[string]any{"ok": map[string]any{"scores": []score{{r.Scorer, float64(len(words)), map[string]any{"messages": len(r.Episode.Messages), "task": r.Task.Data}}}}})
	if err != nil {
		panic(err)
	}
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(out))))<<32 | int64(len(out))
}
