package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/wevalr/wevalr/host/scan"
)

// ValidationError is a request of the wrong shape. Its text is what the real server answers.
type ValidationError struct {
	Model    string // RunRequest, CancelRequest, or a task's own class
	Problems []Problem
}

// Problem is one thing that is wrong with a request. Type is pydantic's name for it.
type Problem struct {
	Loc   string // dotted path; "" for the request itself
	Msg   string
	Type  string
	Input Value
}

func (e *ValidationError) Error() string {
	var s strings.Builder
	s.WriteString("ValidationError: " + strconv.Itoa(len(e.Problems)) + " validation error")
	if len(e.Problems) != 1 {
		s.WriteString("s")
	}
	s.WriteString(" for " + e.Model)
	for _, p := range e.Problems {
		if p.Loc != "" {
			s.WriteString("\n" + p.Loc)
		}
		fmt.Fprintf(&s, "\n  %s [type=%s, input_value=%s, input_type=%s]\n    For further information visit https://errors.pydantic.dev/2.14/v/%s",
			p.Msg, p.Type, inputValue(p.Input), pyType(p.Input), p.Type)
	}
	return s.String()
}

// Add notes one more problem; input is plain data as for [ValueOf].
func (e *ValidationError) Add(loc, msg, typ string, input any) {
	v, err := ValueOf(input)
	if err != nil {
		v = mustValue(fmt.Sprint(input))
	}
	e.add(loc, msg, typ, v)
}

func (e *ValidationError) add(loc, msg, typ string, v Value) {
	e.Problems = append(e.Problems, Problem{Loc: loc, Msg: msg, Type: typ, Input: v})
}

// field is a required field, nil (and noted) when it is missing.
func (e *ValidationError) field(all Value, name string) Value {
	v := all.Get(name)
	if v == nil {
		e.add(name, "Field required", "missing", all)
	}
	return v
}

func (e *ValidationError) str(loc string, v Value) string {
	s, ok := v.Any().(string)
	if !ok {
		e.add(loc, "Input should be a valid string", "string_type", v)
	}
	return s
}

// client checks the tagged union of model clients: unknown keys are errors there.
func (e *ValidationError) client(v Value) {
	m, ok := v.Any().(map[string]any)
	if !ok {
		e.add("client", "Input should be a valid dictionary or object to extract fields from", "model_attributes_type", v)
		return
	}
	typ, ok := m["type"].(string)
	switch {
	case v.Get("type") == nil:
		e.add("client", "Unable to extract tag using discriminator 'type'", "union_tag_not_found", v)
		return
	case !ok || typ != "eval" && typ != "train":
		e.add("client", fmt.Sprintf("Input tag '%v' found using 'type' does not match any of the expected tags: 'eval', 'train'", m["type"]), "union_tag_invalid", v)
		return
	}
	known := []string{"type", "base_url", "api_key_var", "headers", "headers_from_env", "timeout"}
	if typ == "train" {
		known = append(known, "renderer", "renderer_model_name", "multiplex")
	}
	r := reader{b: v}
	for range r.mapLen() {
		k := string(r.key())
		loc := "client." + typ + "." + k
		switch val := r.value(); {
		case !slices.Contains(known, k):
			if val == nil {
				val = Value{0xc0}
			}
			e.add(loc, "Extra inputs are not permitted", "extra_forbidden", val)
		case k == "base_url" || k == "api_key_var":
			e.str(loc, val)
		case k == "headers" || k == "headers_from_env":
			e.strMap(loc, val)
		}
	}
}

func (e *ValidationError) strMap(loc string, v Value) {
	m, ok := v.Any().(map[string]any)
	if !ok {
		e.add(loc, "Input should be a valid dictionary", "dict_type", v)
	}
	for k, val := range m {
		if _, ok := val.(string); !ok {
			e.add(loc+"."+k, "Input should be a valid string", "string_type", v.Get(k))
		}
	}
}

// FormatError is a request whose bytes are no msgpack value. Its text is what the real server
// answers.
type FormatError struct{ Err error }

func (e *FormatError) Error() string {
	if s, ok := errors.AsType[*scan.Error](e.Err); ok {
		switch s.Rule {
		case scan.Trailing:
			return "ExtraData: unpack(b) received extra data."
		case scan.Truncated:
			return "ValueError: Unpack failed: incomplete input"
		case scan.UTF8:
			return fmt.Sprintf("UnicodeDecodeError: invalid UTF-8 in the string at byte %d", s.Offset)
		case scan.Depth:
			return "StackError: " + e.Err.Error()
		case scan.Code:
			return "FormatError: "
		default: // the scan's own words
		}
	}
	if e.Err == nil {
		return "FormatError: "
	}
	return "FormatError: " + e.Err.Error()
}

// Unwrap gives the scan's error.
func (e *FormatError) Unwrap() error { return e.Err }

func checkRequest(payload []byte) error {
	if err := scan.Check(payload, scan.Limits{}); err != nil {
		return &FormatError{Err: err}
	}
	return nil
}

// inputValue is pydantic's excerpt of a value: its Python repr, the middle cut out of a long one.
func inputValue(v Value) string {
	r := reader{b: v}
	s := []rune(string(r.repr(nil)))
	if len(s) > 50 {
		return string(s[:25]) + "..." + string(s[len(s)-24:])
	}
	return string(s)
}

// pyType is the Python name of a value's type.
func pyType(v Value) string {
	switch v.Any().(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case string:
		return "str"
	case []byte:
		return "bytes"
	case float64:
		return "float"
	case map[string]any:
		return "dict"
	case []any:
		return "list"
	}
	return "int"
}

// repr appends the next value as Python's repr would write it, close enough for a message.
func (r *reader) repr(b []byte) []byte {
	switch c := r.peek(); {
	case c == 0xc0 || r.i >= len(r.b):
		r.i++
		return append(b, "None"...)
	case c == 0xc2 || c == 0xc3:
		if r.bool() {
			return append(b, "True"...)
		}
		return append(b, "False"...)
	case r.isStr():
		return pyStr(b, string(r.bytes("a string")))
	case c >= 0xc4 && c <= 0xc6:
		return append(strconv.AppendQuoteToASCII(append(b, 'b'), string(r.bytes("bytes"))), "..."...)
	case c == 0xca || c == 0xcb:
		f := r.f64()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return append(b, strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))...)
		}
		return appendJSONFloat(b, f)
	case r.isMap():
		b = append(b, '{')
		for i := range r.mapLen() {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(r.repr(b), ": "...)
			b = r.repr(b)
		}
		return append(b, '}')
	case r.isList():
		b = append(b, '[')
		for i := range r.listLen() {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = r.repr(b)
		}
		return append(b, ']')
	}
	return r.toJSON(b, 0)
}

func pyStr(b []byte, s string) []byte {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b = append(b, q)
	for _, c := range s {
		switch {
		case c == rune(q) || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < 0x20 || c == 0x7f:
			b = fmt.Appendf(b, `\x%02x`, c)
		default:
			b = append(b, string(c)...)
		}
	}
	return append(b, q)
}
