package plugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
)

// The identity changes with everything that may change a score, and with nothing else.
func TestScorerIdentity(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "f")
	write := func(text string) {
		if err := os.WriteFile(data, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	const extra = "[capabilities]\nfs.dataset = { optional = true }\nvars = { names = [\"WEVALR_TEST_VAR\"], optional = true }\n" +
		"[[option]]\nname = \"n\"\ntype = \"int\"\ndefault = 1\n"
	e := newEngine(t)
	path := source(t, (&guest{Manifest: scorerManifest + extra}).Bytes())
	identity := func(scorer string, change func(*Spec)) string {
		s := Spec{Source: path, Grants: Grants{FS: map[string]string{"dataset": dir}, Vars: []string{"WEVALR_TEST_VAR"}}}
		change(&s)
		return load(t, e, s).ScorerIdentity(scorer)
	}
	same := func(*Spec) {}
	base := identity("correct", same)
	for name, change := range map[string]func(*Spec){
		"alias":   func(s *Spec) { s.Alias = "other" },
		"default": func(s *Spec) { s.Options = map[string]any{"n": 1} },
		"copy":    func(s *Spec) { s.Source = source(t, (&guest{Manifest: scorerManifest + extra}).Bytes()) },
	} {
		if identity("correct", change) != base {
			t.Errorf("%s changes the identity", name)
		}
	}
	seen := map[string]string{base: "base"}
	differs := func(name, id string) {
		if was, twice := seen[id]; twice {
			t.Errorf("%s has the identity of %s", name, was)
		}
		seen[id] = name
	}
	differs("scorer", identity("any", same))
	differs("option", identity("correct", func(s *Spec) { s.Options = map[string]any{"n": 2} }))
	differs("no grant", identity("correct", func(s *Spec) { s.Grants = Grants{} }))
	differs("memory", identity("correct", func(s *Spec) { s.Limits.MemoryMiB = 32 }))
	differs("fuel", identity("correct", func(s *Spec) { s.Limits.Fuel = 5 }))
	differs("module", identity("correct", func(s *Spec) {
		s.Source = source(t, (&guest{Manifest: scorerManifest + extra, Pages: [2]int{5, 9}}).Bytes())
	}))
	t.Setenv("WEVALR_TEST_VAR", "x")
	differs("variable", identity("correct", same))
	write("two")
	differs("dataset", identity("correct", same))
}

func TestLoad_Digest(t *testing.T) {
	e := newEngine(t)
	path := source(t, scoring(score("1")).Bytes())
	p := load(t, e, Spec{Source: path})
	load(t, e, Spec{Source: path, Digest: p.SHA256()})
	var d *DigestError
	if _, err := e.Load(context.Background(), Spec{Source: path, Digest: "00"}); !errors.As(err, &d) || d.Got != p.SHA256() {
		t.Errorf("got %v, want a DigestError", err)
	}
}

func TestPlugin_Accessors(t *testing.T) {
	g := scoring(score("1"))
	p := loadGuest(t, g)
	if p.Alias() != "guest" || p.ABI() != "1.0" || p.Size() != len(g.Bytes()) || len(p.Scorers()) != 2 ||
		!p.Provides(abi.ProvidesScorer) || p.Provides(abi.ProvidesTask) || p.TaskCount() != nil {
		t.Errorf("got %s %s %d %v", p.Alias(), p.ABI(), p.Size(), p.Scorers())
	}
}
