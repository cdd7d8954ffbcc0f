// Package prebuilt holds the interpreter of scripted plugins as a module, where it was generated before
// wevalr was built:
//
//	go generate ./plugins/script/prebuilt && go build ./cmd/wevalr
//
// A release is built so, and then a scripted plugin needs no toolchain. Otherwise the package is empty. The
// module is not committed: it follows from the sources and the Go version.
//
// It has no state: [Module] is safe for concurrent use, and its result belongs to the caller.
package prebuilt

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
)

//go:generate sh -c "GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 GOFLAGS= go build -buildmode=c-shared -trimpath -buildvcs=false -ldflags='-s -w' -o module/script.wasm .. && gzip -9nf module/script.wasm"

//go:embed all:module
var files embed.FS

// Module is the code, without manifest and assets.
//
// # Errors
//
// fs.ErrNotExist where nothing was generated.
func Module() ([]byte, error) {
	packed, err := files.ReadFile("module/script.wasm.gz")
	if err != nil {
		return nil, fmt.Errorf("interpreter: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("interpreter: %w", err)
	}
	code, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("interpreter: %w", err)
	}
	return code, nil
}
