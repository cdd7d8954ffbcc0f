package config

import "strings"

// isName matches [a-z0-9][a-z0-9._-]{0,62}: runs, plugins, granted trees.
func isName(s string) bool {
	if s == "" || len(s) > 63 || strings.IndexByte("._-", s[0]) >= 0 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte("._-", c) < 0 {
			return false
		}
	}
	return true
}

// isVar matches [A-Za-z_][A-Za-z0-9_]*: the name of an environment variable.
func isVar(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// isSecret reports whether a header of that name carries a credential.
func isSecret(header string) bool {
	h := strings.ToLower(header)
	for _, word := range []string{"auth", "key", "token", "cookie", "secret", "password"} {
		if strings.Contains(h, word) {
			return true
		}
	}
	return false
}

// isOffline reports whether the embedded env-server answers for that model without a network.
func isOffline(name string) bool { return strings.HasPrefix(name, "offline/") }

// offlineModels gives the options of each.
func offlineModels() map[string][]string {
	return map[string][]string{"offline/demo": {"wrong_rate", "latency"}, "offline/echo": nil, "offline/replay": {"file"}}
}

// clip shortens what a message quotes.
func clip(s string) string {
	r := []rune(s)
	if len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
