package envserver

import (
	"reflect"
	"testing"
)

func TestMasker(t *testing.T) {
	env := map[string]string{"KEY": "sk-12345678", "LONGER": "sk-12345678-more", "SHORT": "abc", "ODD": `pa"ss/word`}
	m, short := newMasker(func(name string) string { return env[name] }, []string{"KEY", "SHORT", "LONGER", "UNSET", "ODD"})
	if !reflect.DeepEqual(short, []string{"SHORT"}) {
		t.Errorf("short: got %v, want [SHORT]", short)
	}
	for in, want := range map[string]string{
		"Bearer sk-12345678.":  "Bearer [KEY].",
		"sk-12345678-more abc": "[LONGER] abc",
		`{"e": "pa\"ss/word"}`: `{"e": "[ODD]"}`,
		"cut \xff":             "cut \uFFFD",
		"nothing":              "nothing",
	} {
		if got := m.mask(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	got := m.maskAny(map[string]any{"a": []any{"sk-12345678", 1.5}, "sk-12345678": nil})
	if want := map[string]any{"a": []any{"[KEY]", 1.5}, "sk-12345678": nil}; !reflect.DeepEqual(got, want) {
		t.Errorf("maskAny: got %v, want %v", got, want)
	}
	if m, _ := newMasker(func(string) string { return "" }, []string{"KEY"}); m != nil || m.mask("x") != "x" {
		t.Errorf("no secrets: got %v, want the nil masker, which changes nothing", m)
	}
}
