package main

import "strings"

// lastNumber finds the last number in s and gives it in canonical form: "" if there is none, no
// thousands separators, no leading zeros, no empty fraction. A minus counts where it cannot be the
// operator between two terms.
func lastNumber(s string) string {
	last := ""
	for i := 0; i < len(s); {
		if !digit(s, i) {
			i++
			continue
		}
		end := numberEnd(s, i)
		last = canonical(s[i:end])
		if last != "0" && negative(s, i) {
			last = "-" + last
		}
		i = end
	}
	return last
}

func digit(s string, i int) bool { return i >= 0 && i < len(s) && '0' <= s[i] && s[i] <= '9' }

// numberEnd is where the number that begins at i ends: digits, groups of ",ddd", a fraction.
func numberEnd(s string, i int) int {
	for digit(s, i) {
		i++
	}
	for i < len(s) && s[i] == ',' && digit(s, i+1) && digit(s, i+2) && digit(s, i+3) && !digit(s, i+4) {
		i += 4
	}
	if i < len(s) && s[i] == '.' && digit(s, i+1) {
		i++
		for digit(s, i) {
			i++
		}
	}
	return i
}

// negative reports whether a sign stands before the number at i: a minus that follows no term.
func negative(s string, i int) bool {
	sign := strings.HasSuffix(s[:i], "-") || strings.HasSuffix(s[:i], "\u2212")
	before := strings.TrimSuffix(strings.TrimSuffix(s[:i], "-"), "\u2212")
	n := len(before)
	return sign && !digit(before, n-1) && (n == 0 || before[n-1] != ')' && !letter(before[n-1]))
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func canonical(s string) string {
	s = strings.ReplaceAll(s, ",", "")
	if whole, fraction, ok := strings.Cut(s, "."); ok {
		s = whole
		if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
			s += "." + fraction
		}
	}
	for len(s) > 1 && s[0] == '0' && digit(s, 1) {
		s = s[1:]
	}
	return s
}
