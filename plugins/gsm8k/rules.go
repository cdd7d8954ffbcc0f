package main

import "strings"

// The patterns are scanned by hand: package regexp would make the module a third larger, and a call
// several times dearer.

// strict: the first marker with a number after it; nothing found is wrong; both sides normalised.
// (lm-evaluation-harness 0.4, tasks/gsm8k, filter strict-match.)
func (p *plugin) strict(completion, target string) (string, bool) {
	got := marked(completion, p.marker)
	return got, got != "" && normal(got) == normal(target)
}

// flexible: the last thing that looks like a number; both sides normalised. (The same, filter
// flexible-extract.)
func flexible(completion, target string) (string, bool) {
	got := lastNumber(completion)
	return got, got != "" && normal(got) == normal(target)
}

// dataset: as strict, but only commas are dropped. (grade_school_math/dataset.py, is_correct.)
func (p *plugin) dataset(completion, target string) (string, bool) {
	got := marked(completion, p.marker)
	want := target
	if strings.Contains(target, mark) {
		want = marked(target, mark)
	}
	return got, got != "" && strings.ReplaceAll(got, ",", "") == strings.ReplaceAll(want, ",", "")
}

// marked is the first match of marker + (-?[0-9.,]+), without the marker; "" if there is none. The
// dataset's own marker may stand anywhere, another one at a line's start.
func marked(s, marker string) string {
	for at := 0; ; at++ {
		i := strings.Index(s[at:], marker)
		if i < 0 {
			return ""
		}
		at += i
		if marker != mark && at > 0 && s[at-1] != '\n' {
			continue
		}
		begin := at + len(marker)
		digits := begin
		if digits < len(s) && s[digits] == '-' {
			digits++
		}
		if n := run(s[digits:], "0123456789.,"); n > 0 {
			return s[begin : digits+n]
		}
	}
}

// lastNumber is the last match of (-?[$0-9.,]{2,})|(-?[0-9]+), "" if there is none.
func lastNumber(s string) string {
	last := ""
	for i := 0; i < len(s); {
		begin := i
		if s[i] == '-' {
			i++
		}
		n := run(s[i:], "$0123456789.,")
		switch {
		case n >= 2, n == 1 && '0' <= s[i] && s[i] <= '9':
			last = s[begin : i+n]
			i += n
		default:
			i = begin + 1
		}
	}
	return last
}

// run is how many bytes at the beginning of s are of set.
func run(s, set string) int {
	for i := range len(s) {
		if strings.IndexByte(set, s[i]) < 0 {
			return i
		}
	}
	return len(s)
}

// normal is lm-evaluation-harness's exact_match with the task's regexes_to_ignore, in their order: ",",
// "\$", "(?s).*#### ", "\.$"; then lower case.
func normal(s string) string {
	s = strings.ReplaceAll(s, ",", "")
	s = strings.ReplaceAll(s, "$", "")
	if i := strings.LastIndex(s, mark); i >= 0 {
		s = s[i+len(mark):]
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}
