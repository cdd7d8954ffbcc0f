package author

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/wevalr/wevalr/host/plugin"
	"github.com/wevalr/wevalr/plugins/abi"
)

// module builds a plugin's folder.
func module(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := plugin.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return b.Module
}

// scorerModule is the template's.
func scorerModule(t *testing.T) []byte {
	t.Helper()
	needBuild(t)
	return module(t, newPlugin(t, "go", "scorer"))
}

// onDisk writes a module and gives its path.
func onDisk(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// swap replaces text that is there by other text of the same length.
func swap(t *testing.T, b []byte, was, now string) []byte {
	t.Helper()
	if len(was) != len(now) || !bytes.Contains(b, []byte(was)) {
		t.Fatalf("swap %q for %q: not there, or of another length", was, now)
	}
	return bytes.ReplaceAll(b, []byte(was), []byte(now))
}

// sections calls f for each section: its number, all of it, its body.
func sections(t *testing.T, b []byte, f func(id byte, whole, body []byte)) {
	t.Helper()
	for at := 8; at < len(b); {
		n, k := binary.Uvarint(b[at+1:])
		begin := at + 1 + k
		f(b[at], b[at:begin+int(n)], b[begin:begin+int(n)])
		at = begin + int(n)
	}
}

// without drops a custom section.
func without(t *testing.T, b []byte, name string) []byte {
	t.Helper()
	out := bytes.Clone(b[:8])
	sections(t, b, func(id byte, whole, body []byte) {
		n, k := binary.Uvarint(body)
		if id != 0 || string(body[k:k+int(n)]) != name {
			out = append(out, whole...)
		}
	})
	return out
}

// custom appends a custom section.
func custom(b []byte, name, body string) []byte {
	content := append(binary.AppendUvarint(nil, uint64(len(name))), name+body...)
	out := append(bytes.Clone(b), 0)
	return append(binary.AppendUvarint(out, uint64(len(content))), content...)
}

// withManifest replaces the manifest.
func withManifest(t *testing.T, b []byte, manifest string) []byte {
	t.Helper()
	return custom(without(t, b, abi.SectionManifest), abi.SectionManifest, manifest)
}

// withSection replaces the body of a section.
func withSection(t *testing.T, b []byte, id byte, body []byte) []byte {
	t.Helper()
	out := bytes.Clone(b[:8])
	sections(t, b, func(have byte, whole, _ []byte) {
		if have != id {
			out = append(out, whole...)
			return
		}
		out = append(binary.AppendUvarint(append(out, id), uint64(len(body))), body...)
	})
	return out
}
