package envserver

import (
	"encoding/json"
	"sort"
	"strings"
	"unicode/utf8"
)

// minSecret is the shortest value that is masked: a shorter one would blot out ordinary text.
const minSecret = 8

// masker replaces the values of named variables by [NAME]. The nil masker changes nothing.
type masker struct {
	values *strings.Replacer
}

// newMasker reads the variables names. Values shorter than minSecret are not masked; their names
// are returned, so that somebody can be told once.
func newMasker(getenv func(string) string, names []string) (*masker, []string) {
	type secret struct{ value, name string }
	var secrets []secret
	var short []string
	for _, name := range names {
		switch v := getenv(name); {
		case v == "":
		case len(v) < minSecret:
			short = append(short, name)
		default:
			secrets = append(secrets, secret{v, name})
		}
	}
	if len(secrets) == 0 {
		return nil, short
	}
	// The longest first: one secret may begin with another.
	sort.SliceStable(secrets, func(i, j int) bool { return len(secrets[i].value) > len(secrets[j].value) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s.value, "["+s.name+"]")
		// A provider's error text is JSON more often than not.
		for _, escaped := range [...]string{strings.ReplaceAll(s.value, "/", `\/`), jsonEscaped(s.value)} {
			if escaped != s.value {
				pairs = append(pairs, escaped, "["+s.name+"]")
			}
		}
	}
	return &masker{values: strings.NewReplacer(pairs...)}, short
}

func jsonEscaped(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// mask returns s without secrets and as valid UTF-8.
func (m *masker) mask(s string) string {
	if m != nil {
		s = m.values.Replace(s)
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

// maskPtr masks behind a pointer; nil stays nil.
func (m *masker) maskPtr(s *string) *string {
	if s == nil {
		return nil
	}
	t := m.mask(*s)
	return &t
}

// maskAny masks every string value (not the keys) of a JSON-like value, in place where it can.
func (m *masker) maskAny(v any) any {
	switch v := v.(type) {
	case string:
		return m.mask(v)
	case []any:
		for i := range v {
			v[i] = m.maskAny(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = m.maskAny(v[k])
		}
	}
	return v
}
