package plugin

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// resolveOptions types the given values and fills in defaults.
//
// # Errors
//
// *OptionError with every problem.
func resolveOptions(alias string, declared []Option, given map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(declared))
	names := make([]string, 0, len(declared))
	var problems []string
	for i := range declared {
		o := &declared[i]
		names = append(names, o.Name)
		v, set := given[o.Name]
		switch {
		case set:
			typed, err := o.typed(v)
			if err != nil {
				problems = append(problems, o.Name+": "+err.Error())
				continue
			}
			out[o.Name] = typed
		case o.Default != nil:
			out[o.Name] = o.Default
		default:
			problems = append(problems, fmt.Sprintf("%s: must be set: %s (%s)", o.Name, orElse(o.Help, "no default"), o.Type))
		}
	}
	for _, k := range sortedKeys(given) {
		if _, known := out[k]; !known && !slices.Contains(names, k) {
			problems = append(problems, fmt.Sprintf("%s: unknown option, there are: %s",
				k, orElse(strings.Join(names, ", "), "none")))
		}
	}
	if len(problems) > 0 {
		for i := range problems {
			problems[i] = scrub(problems[i])
		}
		return nil, &OptionError{Alias: alias, Problems: problems}
	}
	return out, nil
}

// typed converts a TOML or JSON value to the option's type: string, int64, float64, bool, []string.
func (o *Option) typed(v any) (any, error) {
	switch o.Type {
	case TypeString:
		if s, ok := v.(string); ok {
			return s, nil
		}
	case TypeBool:
		if b, ok := v.(bool); ok {
			return b, nil
		}
	case TypeInt:
		switch n := v.(type) {
		case int:
			return int64(n), nil
		case int64:
			return n, nil
		case float64:
			if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
				return int64(n), nil
			}
		}
	case TypeFloat:
		f, ok := number(v)
		if ok && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
	case TypeStrings:
		if s, ok := stringList(v); ok {
			return s, nil
		}
	}
	return nil, fmt.Errorf("want %s, got %v (%T)", o.Type, v, v)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func stringList(v any) ([]string, bool) {
	switch l := v.(type) {
	case []string:
		return l, true
	case []any:
		out := make([]string, 0, len(l))
		for _, e := range l {
			s, ok := e.(string)
			if !ok {
				return nil, false
			}
			out = append(out, s)
		}
		return out, true
	}
	return nil, false
}
