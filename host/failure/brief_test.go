package failure_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wevalr/wevalr/host/failure"
)

func TestBrief(t *testing.T) {
	for in, want := range map[string]string{
		"":        "",
		"one":     "one",
		"one\n":   "one",
		"a\n\n b": "a; b",
		"1 validation error for RunRequest\nsampling.stream\n  not the sampler's\r\n": "1 validation error for RunRequest; sampling.stream; not the sampler's",
	} {
		if got := failure.Brief(in); got != want {
			t.Errorf("%q: got %q want %q", in, got, want)
		}
	}
	for _, long := range []string{strings.Repeat("ü", 500), strings.Repeat("line\n", 500), "x" + strings.Repeat("€", 500)} {
		got := failure.Brief(long)
		if len(got) > 300 || len(got) < 290 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("got %d bytes: %q", len(got), got)
		}
	}
}
