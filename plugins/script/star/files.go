package star

import (
	"bytes"
	"fmt"

	sjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

func builtins(name string, functions map[string]func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)) *starlarkstruct.Module {
	members := starlark.StringDict{}
	for k, f := range functions {
		members[k] = starlark.NewBuiltin(name+"."+k, f)
	}
	return &starlarkstruct.Module{Name: name, Members: members}
}

// filesModule is `files`: read(name) gives a file's text, jsonl(name) the values of its lines.
func (s *Script) filesModule() *starlarkstruct.Module {
	return builtins("files", map[string]func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error){
		"read": func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			text, _, err := s.named(b, args, kwargs)
			return starlark.String(text), err
		},
		"jsonl": func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			text, name, err := s.named(b, args, kwargs)
			if err != nil {
				return nil, err
			}
			var out []starlark.Value
			decode := sjson.Module.Members["decode"]
			for i, line := range bytes.Split(text, []byte("\n")) {
				if len(bytes.TrimSpace(line)) == 0 {
					continue
				}
				v, err := starlark.Call(t, decode, starlark.Tuple{starlark.String(line)}, nil)
				if err != nil {
					return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
				}
				out = append(out, v)
			}
			return starlark.NewList(out), nil
		},
	})
}

func (s *Script) named(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) ([]byte, string, error) {
	var name string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name); err != nil {
		return nil, "", err
	}
	text, err := s.opt.readFor(b.Name(), name)
	return text, name, err
}

func (o *Options) readFor(builtin, name string) ([]byte, error) {
	if o.Read == nil {
		return nil, fmt.Errorf("%s: %s: there are no assets and no dataset", builtin, name)
	}
	b, err := o.Read(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", builtin, name, err)
	}
	return b, nil
}
