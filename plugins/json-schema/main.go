// Command json-schema is a plugin: a scorer that checks the JSON in a completion against a JSON Schema
// (https://json-schema.org/draft/2020-12), one for all tasks or each task's own.
//
// Schemas are whole in themselves: a $ref leads into the schema or to a published metaschema, never to a file or
// the network. Patterns are RE2, not ECMA 262: those with look-around or back references are refused.
package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/wevalr/wevalr/plugins/internal/expect"
	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/json"
)

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{Init: p.init, Scorers: map[string]sdk.Scorer{"valid": p.valid}})
}

func main() {}

type plugin struct {
	path, extract string
	formats       bool
	schema        *jsonschema.Schema // nil: each task has its own
}

func (p *plugin) init(o *sdk.Options) error {
	schema := o.String("schema", "")
	p.path = o.String("schema_path", "metadata.schema")
	p.extract = o.String("extract", "auto")
	p.formats = o.Bool("formats", false)
	p.schema = nil
	if p.extract != "auto" && p.extract != "whole" && p.extract != "fenced" {
		return sdk.NewError("bad_option", "option extract: want auto, whole or fenced, got "+p.extract)
	}
	if schema == "" {
		return nil
	}
	var err error
	if p.schema, err = p.compile(schema); err != nil {
		return sdk.NewError("bad_option", "option schema: "+err.Error())
	}
	return nil
}

// here is the address of the schema at hand. Nothing is ever loaded from it.
const here = "wevalr:///schema"

func (p *plugin) compile(schema any) (*jsonschema.Schema, error) {
	if text, ok := schema.(string); ok {
		var err error
		if schema, err = json.Parse([]byte(text)); err != nil {
			return nil, err
		}
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if p.formats {
		c.AssertFormat()
	}
	if err := c.AddResource(here, schema); err != nil {
		return nil, err
	}
	return c.Compile(here)
}

// noLoader refuses what is not in the schema.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema cannot refer to " + url + ": nothing is loaded here")
}

func (p *plugin) valid(r sdk.ScoreRequest) ([]sdk.Score, error) {
	schema := p.schema
	if schema == nil {
		own := expect.At(r.Task, p.path)
		if own == nil {
			return nil, sdk.NewError("no_schema", "task "+r.Task.Key+": no schema at "+p.path+" (options schema and schema_path)")
		}
		var err error
		if schema, err = p.compile(own); err != nil {
			return nil, sdk.NewError("bad_task", "task "+r.Task.Key+": schema: "+err.Error())
		}
	}
	text, found := find(r.Episode.Completion, p.extract)
	if !found {
		return wrong("no_answer", "there is no JSON", ""), nil
	}
	v, err := json.Parse([]byte(text))
	if err != nil {
		return wrong("no_json", err.Error(), text), nil
	}
	if err := schema.Validate(v); err != nil {
		return wrong("invalid", explain(err), text), nil
	}
	s := sdk.Binary(true)
	s.Answer = cut(text)
	return []sdk.Score{s}, nil
}

func wrong(label, why, answer string) []sdk.Score {
	s := sdk.Binary(false)
	s.Label, s.Explanation, s.Answer = label, why, cut(answer)
	return []sdk.Score{s}
}

// maxAnswer bounds what of the JSON is kept in a score. Bytes.
const maxAnswer = 4 << 10

func cut(s string) string {
	if len(s) > maxAnswer {
		return strings.ToValidUTF8(s[:maxAnswer], "") + "…"
	}
	return s
}

// maxReasons is how many violations are told.
const maxReasons = 5

// explain tells the violations in the order of their places, since the validator has none.
func explain(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	var reasons []string
	for todo := []*jsonschema.ValidationError{invalid}; len(todo) > 0; {
		e := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], e.Causes...)
		if len(e.Causes) == 0 {
			reasons = append(reasons, cut(e.Error()))
		}
	}
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	if more := len(reasons) > maxReasons; more {
		reasons = append(reasons[:maxReasons], "…")
	}
	return strings.Join(reasons, "\n")
}
