package author

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// indent puts the lines after the first one under it.
func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// keep gives the names that are in given too.
func keep(names, given []string) []string {
	var out []string
	for _, n := range names {
		if slices.Contains(given, n) {
			out = append(out, n)
		}
	}
	return out
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + n
	}
	return out
}

// sum is the sha256 in hex.
func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
