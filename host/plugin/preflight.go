package plugin

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/wevalr/wevalr/host/plugin/meter"
	"github.com/wevalr/wevalr/plugins/abi"
)

const (
	maxModule = 32 << 20
	pageSize  = 64 << 10
	wasi      = "wasi_snapshot_preview1"
)

// refuse makes the error of a step. A module's names may be as long as it is.
func refuse(file, step, remedy, format string, args ...any) error {
	return &ABIError{File: file, Step: step, Remedy: remedy, Msg: scrub(cut(fmt.Sprintf(format, args...), maxErrorText))}
}

// preflight looks at the bytes alone: nothing is compiled and nothing runs.
func preflight(file string, b []byte) (*meter.Info, error) {
	if len(b) < 8 || string(b[:4]) != "\x00asm" {
		return nil, refuse(file, "parse", "", "not a WebAssembly module: it does not start with \\0asm")
	}
	info, err := meter.Check(b, meter.Caps{})
	if err != nil {
		return nil, refused(file, err)
	}
	if err := checkMarker(file, info); err != nil {
		return nil, err
	}
	if err := checkImports(file, info); err != nil {
		return nil, err
	}
	return info, checkExports(file, info)
}

// refused is meter's refusal as the error of the step that it belongs to.
func refused(file string, err error) error {
	r, ok := errors.AsType[*meter.Refusal](err)
	if !ok {
		return refuse(file, "parse", "", "%v", err)
	}
	step := "size"
	switch {
	case r.Section == "module" && r.Limit != "":
		step = "read"
	case r.Section == "import":
		step = "imports"
	case r.Section == "export":
		step = "exports"
	case r.Section == "start":
		step = "start section"
	case r.Section == "memory":
		step = "memory"
	case r.Remedy == "":
		step = "parse"
	}
	msg, _, _ := strings.Cut(r.Error(), "\n")
	if r.Section == "module" && r.Rule == "length" {
		msg += ": unexpected end of the file"
	}
	return &ABIError{
		File: file, Step: step, Msg: scrub(cut(strings.TrimPrefix(msg, "meter: "), maxErrorText)),
		Remedy: orElse(r.Remedy, "build it again: the file is damaged or no wasm module"),
	}
}

// checkMarker compares the version that a module was built for with this host's.
func checkMarker(file string, info *meter.Info) error {
	const rebuild = "rebuild the plugin with the SDK of this wevalr"
	for _, im := range info.Imports {
		if major, ok := strings.CutPrefix(im.Module, "wevalr_v"); ok && major != strconv.Itoa(abi.Major) {
			return refuse(file, "abi", rebuild, "needs ABI %s, this wevalr has %d.%d", major, abi.Major, abi.Minor)
		}
	}
	marker := ""
	for _, ex := range info.Exports {
		v, ok := strings.CutPrefix(ex.Name, abi.MarkerPrefix)
		if !ok || ex.Kind != meter.KindFunc {
			continue
		}
		if marker != "" {
			return refuse(file, "abi", rebuild, "has two markers, %s and %s", abi.MarkerPrefix+marker, ex.Name)
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

// checkImports holds what a module imports against the two tables; there is no other way in.
func checkImports(file string, info *meter.Info) error {
	for _, im := range info.Imports {
		name := im.Module + "." + im.Name
		var want signature
		switch im.Module {
		case abi.Module:
			h := findImport(im.Name)
			if h == nil {
				return refuse(file, "imports", "see plugins/abi/abi.wat", "%s is not in ABI %d.%d", name, abi.Major, abi.Minor)
			}
			want = h.signature()
		case wasi:
			f := findWASI(im.Name)
			if f == nil {
				return refuse(file, "imports", "", "%s is unknown", name)
			}
			want = f.signature()
		default:
			return refuse(file, "imports", "only "+abi.Module+" and "+wasi+" are there", "%s is unknown", name)
		}
		if got := signatureOf(im.Type); !got.equal(want) {
			return refuse(file, "imports", "see plugins/abi/abi.wat", "%s is %s, want %s", name, got, want)
		}
	}
	return nil
}

// checkDeclared refuses imports whose capability the manifest does not ask for.
func checkDeclared(file string, info *meter.Info, q *Capabilities) error {
	for _, im := range info.Imports {
		if im.Module != abi.Module {
			continue
		}
		if h := findImport(im.Name); h.capability == capEnv && q.Env == nil {
			return refuse(file, "imports", "declare it: [capabilities] env = { methods = [\"run\"], why = \"…\" }",
				"%s.%s needs the capability %s, which the manifest does not declare", im.Module, im.Name, h.capability)
		}
	}
	return nil
}

// signature is a function's type.
type signature struct{ params, results []meter.ValType }

func (s signature) String() string {
	names := func(list []meter.ValType) string {
		out := make([]string, len(list))
		for i, v := range list {
			out[i] = v.String()
		}
		return "(" + strings.Join(out, ", ") + ")"
	}
	return names(s.params) + " -> " + names(s.results)
}

func (s signature) equal(o signature) bool {
	return slices.Equal(s.params, o.params) && slices.Equal(s.results, o.results)
}

func signatureOf(t meter.FuncType) signature { return signature{t.Params, t.Results} }

// checkExports looks for what the host calls, by name and type.
func checkExports(file string, info *meter.Info) error {
	i32, i64 := meter.I32, meter.I64
	for _, want := range []struct {
		name     string
		optional bool
		sig      signature
	}{
		{abi.ExportBuf, false, signature{[]meter.ValType{i32}, []meter.ValType{i32}}},
		{abi.ExportCall, false, signature{[]meter.ValType{i32, i32}, []meter.ValType{i64}}},
		{abi.ExportInitialize, true, signature{}},
		{markerOf(info), false, signature{}},
	} {
		ex := findExport(info, want.name, meter.KindFunc)
		if ex == nil {
			if want.optional {
				continue
			}
			return refuse(file, "exports", "see plugins/abi/abi.wat", "%s is missing", want.name)
		}
		if got := signatureOf(ex.Type); !got.equal(want.sig) {
			return refuse(file, "exports", "see plugins/abi/abi.wat", "%s is %s, want %s", want.name, got, want.sig)
		}
	}
	if findExport(info, abi.ExportMemory, meter.KindMemory) == nil {
		return refuse(file, "exports", "see plugins/abi/abi.wat", "memory is missing")
	}
	return nil
}

func findExport(info *meter.Info, name string, kind meter.Kind) *meter.Export {
	i := slices.IndexFunc(info.Exports, func(ex meter.Export) bool { return ex.Name == name && ex.Kind == kind })
	if i < 0 {
		return nil
	}
	return &info.Exports[i]
}

// markerOf is the marker's name; checkMarker has seen it.
func markerOf(info *meter.Info) string {
	for _, ex := range info.Exports {
		if ex.Kind == meter.KindFunc && strings.HasPrefix(ex.Name, abi.MarkerPrefix) {
			return ex.Name
		}
	}
	return abi.Marker
}

// abiVersion is the marker's version as "1.0".
func abiVersion(info *meter.Info) string {
	return strings.ReplaceAll(strings.TrimPrefix(markerOf(info), abi.MarkerPrefix), "_", ".")
}

func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("over %d MiB", limit>>20)
	}
	return b, err
}
