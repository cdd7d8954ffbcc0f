package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"

	"github.com/BurntSushi/toml"
)

// Loader reads eval files. The zero value asks nothing of the world but the files.
type Loader struct {
	// LookupEnv tells whether a variable that the file names is set; its value is not looked at.
	// nil: not asked, for those who only look at a config.
	LookupEnv func(name string) (value string, ok bool)
	// ManifestName reads the name from the manifest of a plugin's source (absolute), for a
	// [[plugin]] without one. nil: then each needs a name.
	ManifestName func(source string) (string, error)
}

// Load is Loader.Load with the process's environment.
func Load(path string, set []Override) (*Config, error) {
	return Loader{LookupEnv: os.LookupEnv}.Load(path, set)
}

// LoadServe is Loader.LoadServe with the process's environment.
func LoadServe(path string, set []Override) (*Model, error) {
	return Loader{LookupEnv: os.LookupEnv}.LoadServe(path, set)
}

// Load reads an eval file, applies the overrides in their order, and checks everything.
//
// # Errors
//
// [Errors], with every problem there is; [*Error] when the file cannot be read.
func (l Loader) Load(path string, set []Override) (*Config, error) {
	c := &Config{}
	b, err := l.bind(path, set, c)
	if err != nil {
		return nil, err
	}
	l.check(b, c)
	if err := b.err(); err != nil {
		return nil, err
	}
	c.origins = newOrigins(b, c.Plugins)
	return c, nil
}

// LoadServe reads what `serve --config` takes: version (may be left out) and [model] as in the
// eval file, checked as for the embedded env-server.
//
// # Errors
//
// As Load.
func (l Loader) LoadServe(path string, set []Override) (*Model, error) {
	doc := &struct {
		Version int   `toml:"version"`
		Model   Model `toml:"model"`
	}{}
	b, err := l.bind(path, set, doc)
	if err != nil {
		return nil, err
	}
	if !b.given("version") || b.checkVersion(doc.Version) {
		l.checkModel(b, &doc.Model, &Server{})
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	return &doc.Model, nil
}

// bind decodes the file and the overrides into dst. Syntax errors end it; there is nothing to bind.
func (l Loader) bind(path string, set []Override, dst any) (*binder, error) {
	src, dir, err := read(path)
	if err != nil {
		return nil, &Error{File: path, Msg: err.Error(), Hint: "give the path of an eval file"}
	}
	lines, line, err := scanLines(src)
	if err != nil {
		return nil, Errors{{File: path, Line: line, Msg: err.Error(), Hint: "no eval file needs that; write it in another form"}}
	}
	var tree map[string]any
	if _, err := toml.Decode(string(src), &tree); err != nil {
		return nil, Errors{syntax(path, err)}
	}
	b := &binder{
		source: source{file: path, tree: plainTable(tree), lines: lines, from: map[string]string{}},
		root:   reflect.TypeOf(dst).Elem(), dir: dir, set: map[string]bool{},
	}
	for _, o := range set {
		if err := b.source.set(o); err != nil {
			b.add(&Error{From: o.From, Key: o.Key, Msg: err.Error(), Hint: "`wevalr config print` shows the keys there are"})
		}
	}
	b.table(nil, b.tree, reflect.ValueOf(dst).Elem())
	return b, nil
}

// read gives a file's bytes and its folder, absolute.
func read(path string) (src []byte, dir string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, "", err
	}
	f, err := os.Open(path)
	if err != nil {
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			err = pe.Err
		}
		return nil, "", fmt.Errorf("cannot be read: %w", err)
	}
	defer func() { _ = f.Close() }()
	src, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("cannot be read: %w", err)
	case len(src) > maxFileBytes:
		return nil, "", errors.New("larger than 1 MiB, so it is no eval file")
	}
	return bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")), filepath.Dir(abs), nil
}

// syntax is what the decoder says of a document that is not TOML.
func syntax(path string, err error) *Error {
	e := &Error{File: path, Msg: err.Error(), Hint: "this line is not TOML; see https://toml.io"}
	if pe, ok := errors.AsType[toml.ParseError](err); ok {
		e.Line, e.Msg = max(1, pe.Position.Line), pe.Message
		if pe.LastKey != "" {
			e.Msg += fmt.Sprintf(" (after key %s)", pe.LastKey)
		}
	}
	return e
}
