package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestScanLines_EveryForm(t *testing.T) {
	for _, tc := range []struct {
		name, src string
		want      map[string]int
	}{
		{"pairs", "a = 1\n# a = 2\n\n  b.c = 'x' # c\n\"d.e\" = 3\n'f' = 4\n", map[string]int{"a": 1, "b": 4, "b.c": 4, `"d.e"`: 5, "f": 6}},
		{"windows", "a = 1\r\n[b]\r\nc = 2\r\n", map[string]int{"a": 1, "b": 2, "b.c": 3}},
		{"bom", "\xef\xbb\xbfa = 1", map[string]int{"a": 1}},
		{"escaped key", `"a\tb\u00e9\x41" = 1`, map[string]int{toml.Key{"a\tbéA"}.String(): 1}},
		{"header after its child", "[a.b]\nx = 1\n[a]\ny = 2\n", map[string]int{"a": 3, "a.b": 1, "a.b.x": 2, "a.y": 4}},
		{
			"arrays of tables", "[[p]]\nx = 1\n[p.g]\ny = 1\n[[p]]\nx = 2\n[p.g.h]\nz = 1\n[[p.q]]\n[[p.q]]\nw = 1\n",
			map[string]int{
				"p": 1, "p.0": 1, "p.0.x": 2, "p.0.g": 3, "p.0.g.y": 4, "p.1": 5, "p.1.x": 6, "p.1.g": 7, "p.1.g.h": 7, "p.1.g.h.z": 8,
				"p.1.q": 9, "p.1.q.0": 9, "p.1.q.1": 10, "p.1.q.1.w": 11,
			},
		},
		{
			"many lines", "a = [\n  1, # ]\n  { x = 2,\n    y = \"]\" },\n]\nb = '''\nc = 1\n'''\nd = \"\"\"\ne = \\\" \"\" \"\"\"\"\"\nf = 1\n",
			map[string]int{"a": 1, "a.0": 2, "a.1": 3, "a.1.x": 3, "a.1.y": 4, "b": 6, "d": 9, "f": 11},
		},
		{"dates and floats", "a = 1979-05-27 07:32:00Z\nb = +inf\nc = 1_000.5e-3\n", map[string]int{"a": 1, "b": 2, "c": 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var doc map[string]any
			if _, err := toml.Decode(tc.src, &doc); err != nil {
				t.Fatalf("the decoder refuses the test's document: %v", err)
			}
			got, _, err := scanLines([]byte(tc.src))
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %v, %v\nwant %v", got, err, tc.want)
			}
		})
	}
}

func TestScanLines_Limits(t *testing.T) {
	for _, tc := range []struct{ name, src string }{
		{"arrays", "\na = " + strings.Repeat("[", 1<<16)},
		{"tables", "\na = " + strings.Repeat("{a=", 1<<16)},
		{"dotted", "\n" + strings.Repeat("a.", 1<<16) + "a = 1"},
		{"header and key", "\n[" + strings.Repeat("a.", maxNesting-1) + "a]\nb = 1"},
		{"empty", "\n'' = 1"},
		{"long", "\n" + strings.Repeat("a", maxKeyBytes+1) + " = 1"},
	} {
		if _, line, err := scanLines([]byte(tc.src)); err == nil || line < 2 {
			t.Errorf("%s: got line %d, %v", tc.name, line, err)
		}
	}
}

// FuzzLoad: no document panics; what loads is written in a form that loads to the same; every
// problem has a line that the file has.
func FuzzLoad(f *testing.F) {
	for _, glob := range []string{"testdata/*.toml", "testdata/wrong/*.toml"} {
		files, err := filepath.Glob(glob)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(src))
		}
	}
	for _, s := range []string{minimal, "a", "[", "[[", "a.", "a=", "a=[", "a={", `"\`, `a="""`, "a='''", "[a]]\n=", "a=[1 2]", "[[a]]\n[a]\n", "\x00"} {
		f.Add(s)
	}
	d := f.TempDir()
	for _, sub := range []string{"plug", "data"} {
		if err := os.Mkdir(filepath.Join(d, sub), 0o700); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := write1(t, filepath.Join(d, "eval.toml"), text)
		c, err := testLoader().Load(path, nil)
		if err != nil {
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("got %T", err)
			}
			for _, e := range all {
				if e.Line < 1 || e.Line > strings.Count(text, "\n")+1 {
					t.Errorf("line %d of %d: %v", e.Line, strings.Count(text, "\n")+1, e)
				}
			}
			return
		}
		again, err := testLoader().Load(write1(t, filepath.Join(d, "again.toml"), string(c.TOML())), nil)
		if err != nil || !same(c, again) {
			t.Errorf("%v\n%s", err, c.TOML())
		}
	})
}
