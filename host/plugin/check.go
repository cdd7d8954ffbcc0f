package plugin

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wevalr/wevalr/plugins/abi"
)

const (
	maxModule = 32 << 20
	pageSize  = 64 << 10
	wasi      = "wasi_snapshot_preview1"
)

// refuse makes the error of a step.
func refuse(file, step, remedy, format string, args ...any) error {
	return &ABIError{File: file, Step: step, Remedy: remedy, Msg: scrub(fmt.Sprintf(format, args...))}
}

// checkModule looks at the bytes alone: nothing is compiled and nothing runs.
func checkModule(file string, b []byte) (*module, error) {
	if len(b) > maxModule {
		return nil, refuse(file, "read", "strip debug information, move data out of the module",
			"over %d MiB", maxModule>>20)
	}
	m, err := parseModule(b)
	if err != nil {
		return nil, refuse(file, "parse", "build it again: the file is damaged or no wasm module", "%v", err)
	}
	if err := checkMarker(file, m); err != nil {
		return nil, err
	}
	if err := checkImports(file, m); err != nil {
		return nil, err
	}
	if m.start {
		return nil, refuse(file, "start section", "build a reactor: export _initialize instead", "a plugin runs no code before its checks")
	}
	if len(m.memories) != 1 {
		return nil, refuse(file, "memory", "", "has %d memories of its own, want exactly one", len(m.memories))
	}
	return m, nil
}

// checkMarker compares the version that a module was built for with this host's.
func checkMarker(file string, m *module) error {
	const rebuild = "rebuild the plugin with the SDK of this wevalr"
	for _, im := range m.imports {
		if major, ok := strings.CutPrefix(im.module, "wevalr_v"); ok && major != strconv.Itoa(abi.Major) {
			return refuse(file, "abi", rebuild, "needs ABI %s, this wevalr has %d.%d", major, abi.Major, abi.Minor)
		}
	}
	marker := ""
	for _, ex := range m.exports {
		v, ok := strings.CutPrefix(ex.name, abi.MarkerPrefix)
		if !ok || ex.kind != kindFunc {
			continue
		}
		if marker != "" {
			return refuse(file, "abi", rebuild, "has two markers, %s and %s", abi.MarkerPrefix+marker, ex.name)
		}
		marker = v
	}
	if marker == "" {
		return refuse(file, "abi", "build it with a wevalr SDK; a plugin exports "+abi.Marker,
			"no marker: this module is not a wevalr plugin")
	}
	majorText, minorText, _ := strings.Cut(marker, "_")
	major, err1 := strconv.ParseUint(majorText, 10, 16)
	minor, err2 := strconv.ParseUint(minorText, 10, 16)
	switch {
	case err1 != nil || err2 != nil:
		return refuse(file, "abi", rebuild, "marker %s is not of the form %s1_0", abi.MarkerPrefix+marker, abi.MarkerPrefix)
	case major != abi.Major:
		return refuse(file, "abi", rebuild, "needs ABI %d.%d, this wevalr has %d.%d", major, minor, abi.Major, abi.Minor)
	case minor > abi.Minor:
		return refuse(file, "abi", "use a newer wevalr, or "+rebuild,
			"needs ABI %d.%d, this wevalr has %d.%d", major, minor, abi.Major, abi.Minor)
	}
	return nil
}

func checkImports(file string, m *module) error {
	for _, im := range m.imports {
		name := im.module + "." + im.name
		switch {
		case im.kind != kindFunc:
			return refuse(file, "imports", "a plugin has its own memory and tables", "%s is not a function", name)
		case im.module == wasi: // names are checked where the engine links them
		case im.module == abi.Module && findImport(im.name) != nil:
		case im.module == abi.Module:
			return refuse(file, "imports", "see plugins/abi/abi.wat", "%s is not in ABI %d.%d", name, abi.Major, abi.Minor)
		default:
			return refuse(file, "imports", "only "+abi.Module+" and "+wasi+" are there", "%s is unknown", name)
		}
	}
	return nil
}

// checkDeclared refuses imports whose capability the manifest does not ask for.
func checkDeclared(file string, m *module, q *Capabilities) error {
	for _, im := range m.imports {
		if im.module != abi.Module {
			continue
		}
		if h := findImport(im.name); h.capability == capEnv && q.Env == nil {
			return refuse(file, "imports", "declare it: [capabilities] env = { methods = [\"run\"], why = \"…\" }",
				"%s.%s needs the capability %s, which the manifest does not declare", im.module, im.name, h.capability)
		}
	}
	return nil
}

// signature is a function's type.
type signature struct{ params, results []api.ValueType }

func (s signature) String() string {
	names := func(list []api.ValueType) string {
		out := make([]string, len(list))
		for i, v := range list {
			out[i] = api.ValueTypeName(v)
		}
		return "(" + strings.Join(out, ", ") + ")"
	}
	return names(s.params) + " -> " + names(s.results)
}

func (s signature) equal(o signature) bool {
	return slices.Equal(s.params, o.params) && slices.Equal(s.results, o.results)
}

func signatureOf(f api.FunctionDefinition) signature {
	return signature{f.ParamTypes(), f.ResultTypes()}
}

// checkSignatures looks at the types that the compiler found: exports, imports of ours, and that
// the WASI functions exist as they are imported.
func checkSignatures(file string, m *module, c wazero.CompiledModule, wasiExports map[string]api.FunctionDefinition) error {
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	exports := c.ExportedFunctions()
	for _, want := range []struct {
		name     string
		optional bool
		sig      signature
	}{
		{abi.ExportBuf, false, signature{[]api.ValueType{i32}, []api.ValueType{i32}}},
		{abi.ExportCall, false, signature{[]api.ValueType{i32, i32}, []api.ValueType{i64}}},
		{abi.ExportInitialize, true, signature{}},
		{markerOf(m), false, signature{}},
	} {
		f, there := exports[want.name]
		if !there {
			if want.optional {
				continue
			}
			return refuse(file, "exports", "see plugins/abi/abi.wat", "%s is missing", want.name)
		}
		if got := signatureOf(f); !got.equal(want.sig) {
			return refuse(file, "exports", "see plugins/abi/abi.wat", "%s is %s, want %s", want.name, got, want.sig)
		}
	}
	if _, there := c.ExportedMemories()[abi.ExportMemory]; !there {
		return refuse(file, "exports", "see plugins/abi/abi.wat", "memory is missing")
	}
	for _, f := range c.ImportedFunctions() {
		mod, name, _ := f.Import()
		var want signature
		if mod == abi.Module {
			want = findImport(name).signature()
		} else if w, known := wasiExports[name]; known {
			want = signatureOf(w)
		} else {
			return refuse(file, "imports", "", "%s.%s is unknown", mod, name)
		}
		if got := signatureOf(f); !got.equal(want) {
			return refuse(file, "imports", "see plugins/abi/abi.wat", "%s.%s is %s, want %s", mod, name, got, want)
		}
	}
	return nil
}

// markerOf is the marker's name; checkModule has seen it.
func markerOf(m *module) string {
	for _, ex := range m.exports {
		if ex.kind == kindFunc && strings.HasPrefix(ex.name, abi.MarkerPrefix) {
			return ex.name
		}
	}
	return abi.Marker
}

// abiVersion is the marker's version as "1.0".
func abiVersion(m *module) string {
	return strings.ReplaceAll(strings.TrimPrefix(markerOf(m), abi.MarkerPrefix), "_", ".")
}

func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("over %d MiB", limit>>20)
	}
	return b, err
}
