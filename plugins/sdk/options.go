package sdk

import "math"

// Options are the plugin's options, typed by its manifest and checked by the host. An option that is
// absent has the default that the caller names; one of another type fails the init.
type Options struct {
	values map[string]any
	err    error
}

func option[T any](o *Options, name string, fallback T, kind string, as func(any) (T, bool)) T {
	v, ok := o.values[name]
	if !ok || v == nil {
		return fallback
	}
	out, ok := as(v)
	if !ok && o.err == nil {
		o.err = NewError(codeOption, "option "+name+": not "+kind)
	}
	return out
}

// String gives a string.
func (o *Options) String(name, fallback string) string {
	return option(o, name, fallback, "a string", func(v any) (string, bool) {
		s, ok := v.(string)
		return s, ok
	})
}

// Bool gives a bool.
func (o *Options) Bool(name string, fallback bool) bool {
	return option(o, name, fallback, "a bool", func(v any) (bool, bool) {
		b, ok := v.(bool)
		return b, ok
	})
}

// Int gives an integer.
func (o *Options) Int(name string, fallback int) int {
	return option(o, name, fallback, "an integer", func(v any) (int, bool) {
		switch v := v.(type) {
		case int64:
			return int(v), true
		case float64:
			return int(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
		}
		return 0, false
	})
}

// Float gives a number.
func (o *Options) Float(name string, fallback float64) float64 {
	return option(o, name, fallback, "a number", func(v any) (float64, bool) {
		switch v := v.(type) {
		case int64:
			return float64(v), true
		case float64:
			return v, true
		}
		return 0, false
	})
}
