package host_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/wevalr/wevalr/"

// doors says which rooms of ours each room may import, directly: docs/rationale.md, "Why are the doors
// a test?". A room that is not listed may import nothing of ours.
var doors = map[string][]string{
	"cmd/wevalr":  {"host"},
	"host":        {"host/", "plugins/abi", "procwatch"},
	"host/config": {"host/failure"},
	// plugins, and the prebuilt interpreter in it, are sources and bytes: what a script is built with.
	"host/plugin":    {"plugins/abi", "host/plugin/meter", "host/scan", "host/failure", "plugins", "plugins/script/prebuilt"},
	"host/wire":      {"host/scan", "host/failure"},
	"host/server":    {"procwatch", "zmqio", "host/wire", "host/failure"},
	"host/envserver": {"zmqio", "host/wire", "host/failure"},
	"host/rollout": {
		"host/plugin", "host/server", "host/wire", "host/journal", "host/stats", "host/failure",
		"plugins/abi", "zmqio",
	},
	"host/journal": {"host/wire", "host/stats", "host/failure"},
	"host/report":  {"host/journal", "host/stats", "host/failure"},
	"host/display": {"host/journal", "host/stats", "host/failure"},
	// The hostile kit is part of `plugin test --conformance`.
	"host/author": {"host/plugin", "host/plugin/meter", "host/failure", "plugins", "plugins/abi", "testplugins/hostile"},
	"plugins/sdk": {"plugins/abi"},
	// A yardstick, which is no part of wevalr.
	"configs/verifiers/client": {"host/server", "host/wire"},
	"plugins/sdk/":             {"plugins/abi", "plugins/sdk", "plugins/sdk/"}, // sdktest, codec, json
	"plugins/":                 {"plugins/abi", "plugins/sdk", "plugins/sdk/", "plugins/internal/"},
	"testplugins/":             {"plugins/abi", "plugins/sdk", "plugins/sdk/", "testplugins/wasm"},
}

// owners says which rooms alone may import a library, and why.
var owners = map[string]struct {
	rooms []string
	why   string
}{
	"github.com/tetratelabs/wazero":  {[]string{"host/plugin"}, "only host/plugin knows the engine"},
	"github.com/go-zeromq/zmq4":      {[]string{"zmqio"}, "only zmqio knows the transport"},
	"github.com/vmihailenco/msgpack": {[]string{"host/plugin"}, "bytes are scanned before they are decoded"},
	"github.com/BurntSushi/toml":     {[]string{"host/config", "host/plugin"}, "only the eval file and the manifest are TOML"},
	"github.com/spf13/cobra":         {[]string{"cmd/wevalr"}, "only the command line knows flags"},
}

// leaves may use no library of others, beside golang.org/x.
var leaves = []string{"plugins/abi", "plugins/sdk", "host/failure", "host/scan", "procwatch"}

func TestDoors(t *testing.T) {
	for _, p := range listPackages(t) {
		room := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module); ok {
				if !mayImport(room, ours) {
					t.Errorf("%s imports %s: no such door", room, ours)
				}
				continue
			}
			for lib, o := range owners {
				if strings.HasPrefix(imp, lib) && !owned(room, o.rooms) {
					t.Errorf("%s imports %s: %s", room, imp, o.why)
				}
			}
			if slices.Contains(leaves, room) && strings.Contains(imp, ".") && !strings.HasPrefix(imp, "golang.org/x/") {
				t.Errorf("%s imports %s: a leaf uses the standard library only", room, imp)
			}
		}
	}
}

func TestPackages_HaveContracts(t *testing.T) {
	for _, p := range listPackages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment: it is the room's contract", p.ImportPath)
		}
	}
}

func mayImport(room, target string) bool {
	if inside(room, target) {
		return true
	}
	allowed, ok := doors[room]
	for r := room; !ok && strings.Contains(r, "/"); { // the nearest "folder/" above
		r = r[:strings.LastIndex(r, "/")]
		allowed, ok = doors[r+"/"]
	}
	for _, a := range allowed {
		if a == target || strings.HasSuffix(a, "/") && strings.HasPrefix(target, a) {
			return true
		}
	}
	return false
}

// inside reports whether target lies in the room's own folder.
func inside(room, target string) bool { return strings.HasPrefix(target, room+"/") }

func owned(room string, rooms []string) bool {
	return slices.ContainsFunc(rooms, func(r string) bool { return room == r || strings.HasPrefix(room, r+"/") })
}

type goPackage struct {
	ImportPath, Doc string
	Imports         []string
	GoFiles         []string
}

// listPackages asks the go command, for both builds: native and wasip1 (the guests).
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	var out []goPackage
	for _, env := range []string{"GOOS=linux", "GOOS=wasip1"} {
		cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Doc,Imports,GoFiles", "./...")
		cmd.Dir = ".."
		arch := "GOARCH=amd64"
		if env == "GOOS=wasip1" {
			arch = "GOARCH=wasm"
		}
		cmd.Env = append(cmd.Environ(), env, arch, "CGO_ENABLED=0")
		raw, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		for {
			var p goPackage
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			out = append(out, p)
		}
	}
	return out
}
