package plugin

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/host/internal/hosttest"
	"github.com/wevalr/wevalr/host/plugin/meter"
	"github.com/wevalr/wevalr/plugins/abi"
)

// The table of imports is the one of abi.wat, and says of each which capability it takes: there is no
// other way for a guest to ask for anything.
func TestImports_AreTotal(t *testing.T) {
	wat, err := os.ReadFile(filepath.Join(hosttest.Root(t), "plugins/abi/abi.wat"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile(`\(import "wevalr_v1" "(\w+)"\s+\(func ([^\n]*)\)\)`).FindAllStringSubmatch(string(wat), -1) {
		want = append(want, m[1]+" "+strings.Repeat("i", strings.Count(m[2], "(param")))
	}
	for _, h := range hostImports() {
		got = append(got, h.name+" "+strings.Repeat("i", h.params))
		if env := strings.HasPrefix(h.name, "env_"); env != (h.capability == capEnv) || env != (len(h.ops) > 0) {
			t.Errorf("%s: capability %q, ops %v", h.name, h.capability, h.ops)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("got %v\nabi.wat has %v", got, want)
	}
}

// Each import that takes a capability is DENIED in every op but its own, and without the grant in that, too.
func TestImports_Denied(t *testing.T) {
	for _, h := range hostImports() {
		if h.capability == "" {
			continue
		}
		for _, o := range []abi.Op{abi.OpInit, abi.OpTasks, abi.OpRollout, abi.OpScore, abi.OpScoreGroup} {
			g := &guest{Manifest: driverManifest, Imports: []guestImport{env(h.name, h.params)}}
			g.Body = cat(callImport(0, slices.Repeat([]any{0}, h.params)...), expect(int32(abi.Denied)), g.Answer(`{"ok":{}}`))
			if o == abi.OpInit {
				g.Init = g.Body
			}
			p := loadGuest(t, g, func(s *Spec) {
				if o != abi.OpRollout {
					granted(s)
				}
			})
			if _, _, _, err := p.CallRaw(context.Background(), o, []byte(`{}`)); err != nil {
				t.Errorf("%s in op %d: %v", h.name, o, err)
			}
		}
	}
}

// The WASI table has every function of preview 1, with the types of its specification.
func TestWASI_IsTotal(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range wasiFuncs() {
		if seen[f.name] || f.run == nil {
			t.Errorf("%s: twice, or without a body", f.name)
		}
		seen[f.name] = true
		if s := f.signature(); len(s.params) != len(f.params) || (len(s.results) == 0) != (f.name == "proc_exit") || len(s.results) == 1 && s.results[0] != meter.I32 {
			t.Errorf("%s: %s", f.name, s)
		}
	}
	if len(seen) != 46 {
		t.Errorf("%d functions, preview 1 has 46", len(seen))
	}
}
