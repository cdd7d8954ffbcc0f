package star

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"unicode"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// textModule is `text`: what scorers do with answers.
//
//	normalize(s)       lower case, no punctuation, no a/an/the, single spaces: SQuAD's rule
//	words(s)           the words of normalize(s)
//	last_line(s)       the last line that is not blank, trimmed
//	numbers(s)         all numbers, as written without thousands separators: ["1234", "-0.5"]
//	last_number(s)     the last of them, or None
//	number(s)          the int or float that s is (separators, $ and a final . or % are left out), or None
//	boxed(s)           what stands in the last \boxed{…}, or None
//	choice(s, n = 4)   the letter of the last option A, B, … that s names, such as "(B)" or "answer: B", or None
//	f1(a, b)           F1 of the words of two texts: SQuAD's rule
//	edit_distance(a, b)  Levenshtein's, in characters
func textModule() *starlarkstruct.Module {
	m := &starlarkstruct.Module{Name: "text", Members: starlark.StringDict{}}
	one := func(name string, f func(s string) starlark.Value) {
		m.Members[name] = starlark.NewBuiltin("text."+name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var s string
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &s); err != nil {
				return nil, err
			}
			return f(s), nil
		})
	}
	two := func(name string, f func(a, b string) (starlark.Value, error)) {
		m.Members[name] = starlark.NewBuiltin("text."+name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var x, y string
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "a", &x, "b", &y); err != nil {
				return nil, err
			}
			return f(x, y)
		})
	}
	figures := regexp.MustCompile(`-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|-?\.\d+`)
	numbers := func(s string) []string {
		list := figures.FindAllString(s, -1)
		for i := range list {
			list[i] = strings.ReplaceAll(list[i], ",", "")
		}
		return list
	}
	one("normalize", func(s string) starlark.Value { return starlark.String(strings.Join(words(s), " ")) })
	one("words", func(s string) starlark.Value { return toStarlark(words(s)) })
	one("last_line", func(s string) starlark.Value {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
		return starlark.String(strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:]))
	})
	one("numbers", func(s string) starlark.Value { return toStarlark(numbers(s)) })
	one("last_number", func(s string) starlark.Value {
		list := numbers(s)
		if len(list) == 0 {
			return starlark.None
		}
		return starlark.String(list[len(list)-1])
	})
	whole := regexp.MustCompile(`^[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][-+]?\d{1,3})?$`)
	one("number", func(s string) starlark.Value { return parseNumber(whole, s) })
	one("boxed", boxed)
	two("f1", func(a, b string) (starlark.Value, error) { return f1(words(a), words(b)), nil })
	two("edit_distance", editDistance)
	m.Members["choice"] = starlark.NewBuiltin("text.choice", choice)
	return m
}

// words is SQuAD's normalization (https://rajpurkar.github.io/SQuAD-explorer/, evaluate-v2.0.py), cut at spaces.
func words(s string) []string {
	s = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsPunct(r) || unicode.IsSymbol(r)) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
	out := []string{}
	for w := range strings.FieldsSeq(s) {
		if w != "a" && w != "an" && w != "the" {
			out = append(out, w)
		}
	}
	return out
}

func parseNumber(form *regexp.Regexp, s string) starlark.Value {
	s = strings.TrimSpace(s)
	s = strings.TrimSuffix(strings.TrimSuffix(s, "."), "%")
	minus := strings.HasPrefix(s, "-")
	if minus {
		s = s[1:]
	}
	s = strings.TrimPrefix(s, "$")
	if !form.MatchString(s) || !strings.ContainsAny(s, "0123456789") || minus && strings.HasPrefix(s, "-") {
		return starlark.None
	}
	s = strings.ReplaceAll(s, ",", "")
	if minus {
		s = "-" + s
	}
	if n, ok := new(big.Int).SetString(strings.TrimPrefix(s, "+"), 10); ok {
		return starlark.MakeBigInt(n)
	}
	f, _, err := big.ParseFloat(s, 10, 53, big.ToNearestEven)
	if err != nil {
		return starlark.None
	}
	v, _ := f.Float64()
	return starlark.Float(v)
}

func boxed(s string) starlark.Value {
	const mark = `\boxed{`
	at := strings.LastIndex(s, mark)
	if at < 0 {
		return starlark.None
	}
	s = s[at+len(mark):]
	open := 1
	for i := range len(s) {
		switch s[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return starlark.String(s[:i])
			}
		}
	}
	return starlark.None
}

func choice(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var s string
	n := 4
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &s, "n?", &n); err != nil {
		return nil, err
	}
	if n < 1 || n > 26 {
		return nil, fmt.Errorf("%s: n: %d is not between 1 and 26", b.Name(), n)
	}
	letter := fmt.Sprintf("[A-%c]", 'A'+n-1)
	for _, p := range []string{
		`(?i:answer|option|choice)(?i:\s+is)?\s*[:=]?\s*\**\(?(` + letter + `)\b`,
		`\((` + letter + `)\)`,
		`\b(` + letter + `)\b`,
	} {
		if all := regexp.MustCompile(p).FindAllStringSubmatch(s, -1); len(all) > 0 {
			return starlark.String(all[len(all)-1][1]), nil
		}
	}
	return starlark.None, nil
}

func f1(a, b []string) starlark.Float {
	if len(a) == 0 || len(b) == 0 {
		if len(a) == len(b) {
			return 1
		}
		return 0
	}
	count := map[string]int{}
	for _, w := range a {
		count[w]++
	}
	same := 0
	for _, w := range b {
		if count[w] > 0 {
			count[w]--
			same++
		}
	}
	return starlark.Float(2 * float64(same) / float64(len(a)+len(b)))
}

// maxDistance bounds the product of the lengths: steps do not count what a builtin does.
const maxDistance = 25_000_000

func editDistance(x, y string) (starlark.Value, error) {
	a, b := []rune(x), []rune(y)
	if len(a) > 0 && len(b) > maxDistance/len(a) {
		return nil, fmt.Errorf("text.edit_distance: %d and %d characters are too many", len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, c := range b {
			cost := 1
			if r == c {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return starlark.MakeInt(row[len(b)]), nil
}
