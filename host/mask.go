package host

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"
	"strings"
)

// minSecret is the shortest value that is masked, in bytes: a shorter one would hit ordinary text.
const minSecret = 8

// secret is a value that must not be written: as it is, as it looks inside a JSON string, and what stands
// for it there.
type secret struct {
	name             string
	raw, value, mask []byte
}

// secrets are the values of the variables that client names or whose name looks like a credential.
// short lists named ones that are too short to be masked.
func secrets(environ, named []string) (found []secret, short []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		isNamed := slices.Contains(named, name)
		if value == "" || !isNamed && !credential(name) {
			continue
		}
		if len(value) < minSecret {
			if isNamed {
				short = append(short, name)
			}
			continue
		}
		found = append(found, secret{name: name, raw: []byte(value), value: jsonText(value), mask: jsonText("[" + name + "]")})
	}
	// The longest first: a secret may contain another.
	sort.SliceStable(found, func(i, j int) bool { return len(found[i].value) > len(found[j].value) })
	return found, short
}

// credential tells names such as OPENAI_API_KEY or SESSION_COOKIE.
func credential(name string) bool {
	parts := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' })
	return slices.ContainsFunc(parts, func(p string) bool {
		return slices.Contains([]string{"KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "AUTH", "COOKIE", "CREDENTIAL", "CREDENTIALS"}, p)
	})
}

// jsonText is s as it stands between the quotes of a JSON string.
func jsonText(s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	b := bytes.TrimSpace(buf.Bytes())
	return b[1 : len(b)-1]
}

// masker gives the function that masks one JSON line, in string values only; nil when there is nothing
// to mask.
func masker(list []secret) func([]byte) []byte {
	if len(list) == 0 {
		return nil
	}
	return func(line []byte) []byte {
		for _, s := range list {
			if bytes.Contains(line, s.value) {
				line = maskValues(line, s)
			}
		}
		return line
	}
}

// maskValues replaces s inside the string values of a JSON text: not in keys, not in numbers.
func maskValues(line []byte, s secret) []byte {
	out := make([]byte, 0, len(line))
	for len(line) > 0 {
		open := bytes.IndexByte(line, '"')
		if open < 0 {
			break
		}
		end := open + 1
		for end < len(line) && line[end] != '"' {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(line))
		out = append(out, line[:open]...)
		text := line[open:end]
		line = line[end:]
		if rest := bytes.TrimLeft(line, " \t"); len(rest) > 0 && rest[0] == ':' {
			out = append(out, text...)
			continue
		}
		out = append(out, bytes.ReplaceAll(text, s.value, s.mask)...)
	}
	return append(out, line...)
}

// textMasker masks plain text.
func textMasker(list []secret) func(string) string {
	if len(list) == 0 {
		return nil
	}
	pairs := make([]string, 0, 2*len(list))
	for _, s := range list {
		pairs = append(pairs, string(s.raw), "["+s.name+"]")
	}
	return strings.NewReplacer(pairs...).Replace
}

// rawMasker masks bytes of any form, and keeps their length: a msgpack reply stays readable.
func rawMasker(list []secret) func([]byte) []byte {
	if len(list) == 0 {
		return nil
	}
	return func(raw []byte) []byte {
		for _, s := range list {
			raw = bytes.ReplaceAll(raw, s.raw, bytes.Repeat([]byte("*"), len(s.raw)))
		}
		return raw
	}
}
