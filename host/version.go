package host

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/wevalr/wevalr/plugins/abi"
)

// speaks is the env-server wire that this wevalr was built for: docs/protocol.md.
const speaks = "verifiers 0.4"

// Version is the module's version, or "devel" and the commit it was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// PrintVersion prints what this binary is and what it speaks.
func (h *Host) PrintVersion(asJSON bool) error {
	if asJSON {
		return json.NewEncoder(h.Stdout).Encode(map[string]any{
			"version": Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
			"abi": fmt.Sprintf("%d.%d", abi.Major, abi.Minor), "wire": speaks,
		})
	}
	_, err := fmt.Fprintf(h.Stdout, "wevalr %s\nplugin ABI %d.%d, env-server wire of %s\n%s %s/%s\n",
		Version(), abi.Major, abi.Minor, speaks, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
