package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The verdict finds each thing that a host may do wrong.
func TestModule_Verdict(t *testing.T) {
	refused := Module{Step: "meter", Kind: "abi", Says: "no start", Within: time.Second}
	fails := Module{Loads: true, Kind: "fuel", Says: "instructions", Within: time.Second}
	well := Module{Loads: true, Says: `"value":1`, Within: time.Second}
	for name, tc := range map[string]struct {
		m       Module
		loading bool
		o       Outcome
		want    string // "" = as the kit has it
	}{
		"refused":              {refused, true, Outcome{Step: "meter", Kind: "abi", Text: "has no start"}, ""},
		"refused elsewhere":    {refused, true, Outcome{Step: "compile", Kind: "abi", Text: "has no start"}, `at step "compile"`},
		"refused otherwise":    {refused, true, Outcome{Step: "meter", Kind: "trap", Text: "has no start"}, `as "trap"`},
		"refused without why":  {refused, true, Outcome{Step: "meter", Kind: "abi", Text: "no"}, `want "no start" in it`},
		"refused late":         {refused, true, Outcome{Step: "meter", Kind: "abi", Text: "has no start", Took: time.Minute}, "1m0s"},
		"not refused":          {refused, true, Outcome{}, "was loaded"},
		"loaded":               {fails, true, Outcome{}, ""},
		"not loaded":           {fails, true, Outcome{Kind: "abi", Text: "why"}, "why"},
		"failed":               {fails, false, Outcome{Kind: "fuel", Text: "instructions"}, ""},
		"a failure is a score": {fails, false, Outcome{Text: `{"value":0}`}, `want "fuel"`},
		"failed otherwise":     {fails, false, Outcome{Kind: "deadline", Text: "instructions"}, `want "fuel"`},
		"failed late":          {fails, false, Outcome{Kind: "fuel", Text: "instructions", Took: time.Minute}, "1m0s"},
		"went well":            {well, false, Outcome{Text: `{"value":1}`}, ""},
		"another score":        {well, false, Outcome{Text: `{"value":2}`}, "in it"},
		"too much":             {fails, false, Outcome{Kind: "fuel", Text: "instructions" + strings.Repeat("x", maxText)}, "bytes of text"},
		"an escape sequence":   {well, false, Outcome{Text: "{\"value\":1,\"label\":\"\x1b[2J\"}"}, "a terminal obeys"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.m.Call(tc.o, tc.o)
			if tc.loading {
				err = tc.m.Loading(tc.o)
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if err := well.Call(Outcome{Text: `{"value":1} `}, Outcome{Text: `{"value":1}`}); err == nil {
		t.Error("a second call unlike the first: got no error")
	}
}

func TestModules_AreNamed(t *testing.T) {
	parts, names := map[string]bool{}, map[string]bool{}
	last := ""
	for _, m := range Modules() {
		if m.Part == "" || m.Part != last && parts[m.Part] {
			t.Errorf("%s: part %q is empty, or in two pieces", m.Name, m.Part)
		}
		if names[m.Name] {
			t.Errorf("%s: two modules of that name", m.Name)
		}
		parts[m.Part], names[m.Name], last = true, true, m.Part
	}
}

// The links do lead outside: a host that followed them would read the secret.
func TestFolder_LinksLeadOutside(t *testing.T) {
	dir, err := Folder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"in": "in", "absolute": "secret", "relative": "secret", "folder/secret": "secret"} {
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
}
