package author

import (
	"bytes"
	"testing"
)

// Each template passes its own cases and the built-in ones, natively and as wasm.
func TestTest_Templates(t *testing.T) {
	needBuild(t)
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			got, err := Test(t.Context(), TestSpec{Dir: newPlugin(t, "go", kind)})
			if err != nil {
				t.Fatal(err)
			}
			var text bytes.Buffer
			if err := got.Text(&text); err != nil {
				t.Fatal(err)
			}
			if got.Failed > 0 || !got.Native.OK {
				t.Errorf("%s", text.String())
			}
			t.Log(text.String())
		})
	}
}
