package prebuilt

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
)

func TestModule(t *testing.T) {
	code, err := Module()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("not generated: go generate ./plugins/script/prebuilt")
	}
	if err != nil || !bytes.HasPrefix(code, []byte("\x00asm")) {
		t.Errorf("got %d bytes, %v", len(code), err)
	}
}
