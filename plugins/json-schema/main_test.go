package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

type object = map[string]any

const person = `{
	"type": "object", "required": ["name"], "additionalProperties": false,
	"properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "minimum": 0}, "mail": {"format": "email"},
		"tags": {"prefixItems": [{"const": "x"}], "items": {"$ref": "#/$defs/tag"}, "uniqueItems": true}},
	"$defs": {"tag": {"enum": ["a", "b"]}}
}`

func TestValid(t *testing.T) {
	for _, c := range []struct {
		completion string
		value      float64
		label      string
		answer     string
	}{
		{`{"name": "Ann", "age": 3}`, 1, "", `{"name": "Ann", "age": 3}`},
		{` {"name": "Ann", "tags": ["x", "a", "b"]}` + "\n", 1, "", `{"name": "Ann", "tags": ["x", "a", "b"]}`},
		{`{"name": "Ann", "age": 3.0}`, 1, "", `{"name": "Ann", "age": 3.0}`}, // a whole number
		{`{"name": "Ann", "mail": "no"}`, 1, "", `{"name": "Ann", "mail": "no"}`},
		{`{"name": ""}`, 0, "invalid", `{"name": ""}`},
		{`{"name": "Ann", "age": -1}`, 0, "invalid", `{"name": "Ann", "age": -1}`},
		{`{"name": "Ann", "tags": ["x", "c"]}`, 0, "invalid", `{"name": "Ann", "tags": ["x", "c"]}`},
		{`{"name": "Ann", "tags": ["x", "a", "a"]}`, 0, "invalid", `{"name": "Ann", "tags": ["x", "a", "a"]}`},
		{`{"name": "Ann", "more": 1}`, 0, "invalid", `{"name": "Ann", "more": 1}`},
		{`{"age": 3}`, 0, "invalid", `{"age": 3}`},
		{`[]`, 0, "invalid", `[]`},
		{`"Ann"`, 0, "invalid", `"Ann"`},
		{`{"name": "Ann",}`, 0, "no_json", `{"name": "Ann",}`},
		{"Sure:\n```json\n{\"name\": \"Ann\"}\n```\nDone.", 1, "", `{"name": "Ann"}`},
		{"```\n{\"name\": \"Ann\"}\n```", 1, "", `{"name": "Ann"}`},
		{"```json\n{\"name\": 1}\n```\nBetter:\n```JSON\n{\"name\": \"Ann\"}\n```\n```\nx\n```", 1, "", `{"name": "Ann"}`},
		{"```json\n{\"name\": \"Ann\"\n```\n", 0, "no_json", `{"name": "Ann"`},
		{"```json\n{\"name\": \"Ann\"}", 1, "", `{"name": "Ann"}`},
		{"```python\nx = {}\n```\n{\"name\": \"Ann\"}", 1, "", `{"name": "Ann"}`},
		{`It is {"name": "A}n\"n"}, as {it} [1] says.`, 1, "", `{"name": "A}n\"n"}`},
		{`It is {so}.`, 0, "no_json", `{so}`},
		{`It is {"name": "A}n\"n"}, as [1] says.`, 1, "", `{"name": "A}n\"n"}`},
		{`It is [{"name": "Ann"}]`, 0, "invalid", `[{"name": "Ann"}]`},
		{`{ not closed {"name": "Ann"}`, 1, "", `{"name": "Ann"}`},
		{"no JSON here", 0, "no_answer", ""},
		{"", 0, "no_answer", ""},
	} {
		got, err := sdktest.New(t, sdktest.Host{Options: object{"schema": person}}).Score("valid", abi.Task{Key: "k"}, abi.Episode{Completion: c.completion})
		if err != nil || len(got) != 1 || *got[0].Value != c.value || got[0].Label != c.label || got[0].Answer != c.answer || (got[0].Explanation == "") != (c.value == 1) {
			t.Errorf("%q: got %+v, %v; want %v %s %q", c.completion, got, err, c.value, c.label, c.answer)
		}
	}
}

func TestValid_Options(t *testing.T) {
	for _, c := range []struct {
		options    object
		schema     any // the task's
		completion string
		value      float64
	}{
		{object{"schema": person, "formats": true}, nil, `{"name": "Ann", "mail": "no"}`, 0},
		{object{"schema": person, "formats": true}, nil, `{"name": "Ann", "mail": "a@b.example"}`, 1},
		{object{"schema": person, "extract": "whole"}, nil, "```json\n{\"name\": \"Ann\"}\n```", 0},
		{object{"schema": person, "extract": "whole"}, nil, `{"name": "Ann"}`, 1},
		{object{"schema": person, "extract": "fenced"}, nil, `{"name": "Ann"}`, 0},
		{nil, object{"type": "integer"}, "7", 1},
		{nil, object{"type": "integer", "multipleOf": int64(2)}, "7", 0},
		{nil, object{"$ref": "#"}, "7", 0}, // it never ends: the validator says so
		{nil, `{"type": "string"}`, `"x"`, 1},
		{nil, true, "null", 1},
		{nil, false, "null", 0},
		{nil, object{"$schema": "http://json-schema.org/draft-07/schema#", "items": []any{object{"type": "null"}}}, "[1]", 0},
		{object{"schema_path": "data.s"}, nil, "1", 1},
	} {
		task := abi.Task{Key: "k", Metadata: object{"schema": c.schema}, Data: object{"s": object{"const": int64(1)}}}
		got, err := sdktest.New(t, sdktest.Host{Options: c.options}).Score("valid", task, abi.Episode{Completion: c.completion})
		if err != nil || len(got) != 1 || *got[0].Value != c.value {
			t.Errorf("%v %v %q: got %+v, %v; want %v", c.options, c.schema, c.completion, got, err, c.value)
		}
	}
}

func TestValid_Explanation(t *testing.T) {
	got, err := sdktest.New(t, sdktest.Host{Options: object{"schema": person}}).Score("valid", abi.Task{Key: "k"},
		abi.Episode{Completion: `{"age": "x", "tags": [1, 1]}`})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(got[0].Explanation)
	lines := strings.Split(got[0].Explanation, "\n")
	if len(lines) < 3 || !strings.Contains(got[0].Explanation, "'/age': got string, want integer") || !strings.Contains(got[0].Explanation, "missing property 'name'") {
		t.Errorf("got %q", got[0].Explanation)
	}
}

func TestValid_BadSchemas(t *testing.T) {
	for _, schema := range []any{
		object{"type": "thing"},
		"{",
		object{"pattern": "(?=a)"},
		object{"$ref": "#/nowhere"},
		object{"$ref": "file:///etc/passwd"},
		object{"$ref": "http://example.com/schema"},
		int64(1),
		[]any{},
	} {
		_, err := sdktest.New(t, sdktest.Host{}).Score("valid", abi.Task{Key: "k", Metadata: object{"schema": schema}}, abi.Episode{Completion: "1"})
		var own *sdk.Error
		if !errors.As(err, &own) || own.Code != "bad_task" {
			t.Errorf("%v: got %v, want bad_task", schema, err)
		}
	}
	if _, err := sdktest.New(t, sdktest.Host{}).Score("valid", abi.Task{Key: "k"}, abi.Episode{Completion: "1"}); err == nil {
		t.Error("no schema: got no error")
	}
	for _, o := range []object{{"schema": "{"}, {"schema": `{"type": 1}`}, {"extract": "some"}} {
		if _, err := sdktest.New(t, sdktest.Host{Options: o}).Init(); err == nil {
			t.Errorf("%v: got no error", o)
		}
	}
}

func TestValid_Hostile(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{Options: object{"schema": `{"items": {"$ref": "#"}, "uniqueItems": true, "additionalProperties": {"$ref": "#"}}`}})
	texts := []string{"\xff", "{\"\xff\": 1}", "`", "```", "````json", "```json", "]", "}", "\"", "{\"", "[\"\\", "1e999", strings.Repeat("[", 200) + strings.Repeat("]", 200)}
	for _, unit := range []string{"[", "{", "]", "`", "```\n", "```json\n[1]\n", "{}", "[]", "\"", "{\"a\":", "[1,", "\xff"} {
		texts = append(texts, strings.Repeat(unit, 200_000/len(unit)))
	}
	texts = append(texts, "["+strings.Repeat("1,", 50_000)+"1]")
	for _, s := range texts {
		if got, err := p.Score("valid", abi.Task{Key: "k"}, abi.Episode{Completion: s}); err != nil || len(got) != 1 || len(got[0].Answer) > maxAnswer+8 {
			t.Errorf("%.20q: got %v, %v", s, got, err)
		}
	}
}
