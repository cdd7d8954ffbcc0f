package star

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// regexps is `re`: Python's names with Go's syntax and meaning (https://go.dev/s/re2syntax): linear time,
// leftmost-first, no lookaround and no backreferences in a pattern; flags stand in it, as (?i). Positions
// are bytes, like the indices of Starlark's strings.
type regexps struct{ compiled map[string]*regexp.Regexp }

// maxRegexps is how many patterns are kept; past it all are forgotten.
const maxRegexps = 256

func newRegexps() *regexps { return &regexps{compiled: map[string]*regexp.Regexp{}} }

func (r *regexps) module() *starlarkstruct.Module {
	return builtins("re", map[string]func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error){
		// search gives the first match anywhere, match the one at the beginning, fullmatch that of all, or None.
		"search":    r.finder("%s"),
		"match":     r.finder(`\A(?:%s)`),
		"fullmatch": r.finder(`\A(?:%s)\z`),
		"findall":   r.findall,
		"finditer":  r.finditer,
		"sub":       r.sub,
		"split":     r.split,
		"escape": func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var s string
			err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &s)
			return starlark.String(regexp.QuoteMeta(s)), err
		},
	})
}

func (r *regexps) compile(b *starlark.Builtin, form, pattern string) (*regexp.Regexp, error) {
	full := pattern
	if form != "%s" {
		full = fmt.Sprintf(form, pattern)
	}
	if re := r.compiled[full]; re != nil {
		return re, nil
	}
	_, err := regexp.Compile(pattern)
	if err != nil {
		msg := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		if strings.Contains(pattern, "(?=") || strings.Contains(pattern, "(?!") || strings.Contains(pattern, "(?<") || strings.Contains(msg, `\`) {
			msg += "\nhint: patterns are Go's (https://go.dev/s/re2syntax): no lookaround, no backreferences"
		}
		return nil, fmt.Errorf("%s: %s", b.Name(), msg)
	}
	re, err := regexp.Compile(full)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	if len(r.compiled) >= maxRegexps {
		clear(r.compiled)
	}
	r.compiled[full] = re
	return re, nil
}

// unpack reads (pattern, text) and compiles the pattern.
func (r *regexps) unpack(b *starlark.Builtin, form string, args starlark.Tuple, kwargs []starlark.Tuple) (*regexp.Regexp, string, error) {
	var pattern, s string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "text", &s); err != nil {
		return nil, "", err
	}
	re, err := r.compile(b, form, pattern)
	return re, s, err
}

func (r *regexps) finder(form string) func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		re, s, err := r.unpack(b, form, args, kwargs)
		if err != nil {
			return nil, err
		}
		at := re.FindStringSubmatchIndex(s)
		if at == nil {
			return starlark.None, nil
		}
		return &match{re, s, at}, nil
	}
}

// findall gives what Python's does: texts, those of the group if there is one, tuples if there are more.
func (r *regexps) findall(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	re, s, err := r.unpack(b, "%s", args, kwargs)
	if err != nil {
		return nil, err
	}
	return listOf(re.FindAllStringSubmatch(s, -1), func(groups []string) starlark.Value {
		if len(groups) <= 2 {
			return starlark.String(groups[len(groups)-1])
		}
		t := make(starlark.Tuple, len(groups)-1)
		for i := range t {
			t[i] = starlark.String(groups[i+1])
		}
		return t
	}), nil
}

// finditer gives a list of matches.
func (r *regexps) finditer(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	re, s, err := r.unpack(b, "%s", args, kwargs)
	if err != nil {
		return nil, err
	}
	return listOf(re.FindAllStringSubmatchIndex(s, -1), func(at []int) starlark.Value { return &match{re, s, at} }), nil
}

// sub replaces every match, or the first count of them: by a text with \1 and \g<name>, or by what a
// function makes of the match.
func (r *regexps) sub(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var pattern, s string
	var repl starlark.Value
	count := 0
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "pattern", &pattern, "repl", &repl, "text", &s, "count?", &count); err != nil {
		return nil, err
	}
	re, err := r.compile(b, "%s", pattern)
	if err != nil {
		return nil, err
	}
	if count <= 0 {
		count = -1
	}
	template, isText := starlark.AsString(repl)
	f, isFunc := repl.(starlark.Callable)
	if !isText && !isFunc {
		return nil, fmt.Errorf("%s: repl: %s, want a string or a function", b.Name(), repl.Type())
	}
	var out strings.Builder
	end := 0
	for _, at := range re.FindAllStringSubmatchIndex(s, count) {
		out.WriteString(s[end:at[0]])
		end = at[1]
		m := &match{re, s, at}
		if isText {
			err = m.expand(&out, template)
		} else {
			var v starlark.Value
			if v, err = starlark.Call(t, f, starlark.Tuple{m}, nil); err == nil {
				part, ok := starlark.AsString(v)
				if !ok {
					err = fmt.Errorf("%s: repl gave %s, want a string", b.Name(), v.Type())
				}
				out.WriteString(part)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	out.WriteString(s[end:])
	return starlark.String(out.String()), nil
}

func (r *regexps) split(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	re, s, err := r.unpack(b, "%s", args, kwargs)
	if err != nil {
		return nil, err
	}
	return toStarlark(re.Split(s, -1)), nil
}

// match is one match: m.group(1), m.group("name"), m[1], m.groups(), m.start(), m.end().
type match struct {
	re   *regexp.Regexp
	text string
	at   []int
}

// group gives a group by number or name; one that did not take part is None.
func (m *match) group(v starlark.Value) (starlark.Value, error) {
	i := -1
	if name, ok := starlark.AsString(v); ok {
		i = m.re.SubexpIndex(name)
	} else if n, err := starlark.AsInt32(v); err == nil {
		i = n
	}
	if i < 0 || i > m.re.NumSubexp() {
		return nil, fmt.Errorf("no group %s, the pattern has %d", v, m.re.NumSubexp())
	}
	if m.at[2*i] < 0 {
		return starlark.None, nil
	}
	return starlark.String(m.text[m.at[2*i]:m.at[2*i+1]]), nil
}

func (m *match) expand(out *strings.Builder, template string) error {
	for {
		before, after, more := strings.Cut(template, `\`)
		out.WriteString(before)
		if !more {
			return nil
		}
		var group starlark.Value
		switch {
		case strings.HasPrefix(after, "g<") && strings.Contains(after, ">"):
			name, rest, _ := strings.Cut(after[2:], ">")
			group, template = starlark.String(name), rest
			if n, err := strconv.Atoi(name); err == nil {
				group = starlark.MakeInt(n)
			}
		case after != "" && after[0] >= '0' && after[0] <= '9':
			group, template = starlark.MakeInt(int(after[0]-'0')), after[1:]
		default:
			out.WriteByte('\\')
			template = strings.TrimPrefix(after, `\`)
			continue
		}
		v, err := m.group(group)
		if err != nil {
			return fmt.Errorf("re.sub: repl: %w", err)
		}
		s, _ := starlark.AsString(v)
		out.WriteString(s)
	}
}

// Attr implements starlark.HasAttrs.
func (m *match) Attr(name string) (starlark.Value, error) {
	place := func(half int) *starlark.Builtin {
		return starlark.NewBuiltin(name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return starlark.MakeInt(m.at[half]), nil
		})
	}
	switch name {
	case "start":
		return place(0), nil
	case "end":
		return place(1), nil
	case "group":
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var which starlark.Value = starlark.MakeInt(0)
			if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 0, &which); err != nil {
				return nil, err
			}
			return m.group(which)
		}), nil
	case "groups":
		return starlark.NewBuiltin(name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			t := make(starlark.Tuple, m.re.NumSubexp())
			for i := range t {
				t[i], _ = m.group(starlark.MakeInt(i + 1)) // there are as many groups
			}
			return t, nil
		}), nil
	}
	return nil, nil
}

// AttrNames implements starlark.HasAttrs.
func (m *match) AttrNames() []string { return []string{"end", "group", "groups", "start"} }

// Get implements starlark.Mapping.
func (m *match) Get(k starlark.Value) (starlark.Value, bool, error) {
	v, err := m.group(k)
	return v, err == nil, err
}

func (m *match) String() string        { return fmt.Sprintf("match(%q)", m.text[m.at[0]:m.at[1]]) }
func (m *match) Type() string          { return "match" }
func (m *match) Freeze()               {}
func (m *match) Truth() starlark.Bool  { return true }
func (m *match) Hash() (uint32, error) { return 0, errors.New("unhashable: match") }
