package author

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Case is one file of a plugin's folder cases/: a call and what it must give. With scorer it is a score,
// with replies a rollout, with neither an enumeration of the tasks.
type Case struct {
	Options map[string]any `json:"options,omitempty"`
	Scorer  string         `json:"scorer,omitempty"`
	Task    *abi.Task      `json:"task,omitempty"`
	// Episode is for a scorer of kind rollout, Episodes for one of kind group; only the scorer's views of
	// them reach it.
	Episode  *abi.Episode  `json:"episode,omitempty"`
	Episodes []abi.Episode `json:"episodes,omitempty"`
	// Replies are the env-server's answers to a rollout's calls, in order.
	Replies []abi.Episode `json:"replies,omitempty"`
	Seed    int64         `json:"seed,omitempty"`
	Want    Want          `json:"want"`

	name, file string
	check      func(got result) (status, detail string) // of built-in cases; nil: Want
	answer     answerFunc                               // instead of Replies
	counts     bool                                     // gives another value each time, on purpose
}

// Want is what a call must give: scores or the code of an error; of a score only the fields that are there
// are compared.
type Want struct {
	Scores   []map[string]any `json:"scores,omitempty"`
	Selected *int             `json:"selected,omitempty"` // of a rollout
	Tasks    []string         `json:"tasks,omitempty"`    // keys, in order
	Error    string           `json:"error,omitempty"`
}

func (c *Case) kind() string {
	switch {
	case c.Scorer != "":
		return "score"
	case c.Replies != nil || c.answer != nil:
		return "rollout"
	}
	return "tasks"
}

// readCases reads the .json files of a folder, sorted by name; no folder = none.
func readCases(dir string) ([]*Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []*Case
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c := &Case{name: filepath.Base(file), file: file}
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		dec.UseNumber()
		if err := dec.Decode(c); err != nil {
			return nil, &RequestError{fmt.Sprintf("%s: %v", file, err)}
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return nil, &RequestError{file + ": more than one JSON value"}
		}
		if err := c.tidy(); err != nil {
			return nil, &RequestError{fmt.Sprintf("%s: %v", file, err)}
		}
		out = append(out, c)
	}
	return out, nil
}

// tidy turns JSON's numbers into those that a plugin gets, and says what cannot be.
func (c *Case) tidy() error {
	numbers(reflect.ValueOf(c).Elem())
	switch c.kind() {
	case "score":
		if c.Task == nil || (c.Episode == nil) == (c.Episodes == nil) {
			return errors.New("a score needs task and either episode or episodes")
		}
	case "rollout":
		if c.Task == nil {
			return errors.New("a rollout needs task")
		}
	}
	return nil
}

// numbers replaces json.Number in untyped places: whole numbers become int64, others float64.
func numbers(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			numbers(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				numbers(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			numbers(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if e := v.MapIndex(k); e.Kind() == reflect.Interface {
				v.SetMapIndex(k, reflect.ValueOf(&[]any{plainNumber(e.Interface())}[0]).Elem())
			}
		}
	case reflect.Interface:
		if !v.IsNil() && v.CanSet() {
			v.Set(reflect.ValueOf(plainNumber(v.Interface())))
		}
	default:
	}
}

func plainNumber(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n
		}
		f, err := x.Float64()
		if err != nil {
			return x.String()
		}
		return f
	case map[string]any:
		for k, e := range x {
			x[k] = plainNumber(e)
		}
	case []any:
		for i, e := range x {
			x[i] = plainNumber(e)
		}
	}
	return v
}

// only keeps the views of an episode that its reader asks for.
func only(ep abi.Episode, views []string) abi.Episode {
	v := reflect.ValueOf(&ep).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if !slices.Contains(views, name) {
			v.Field(i).SetZero()
		}
	}
	return ep
}

// differs says where a result is not what the case wants, "" for nowhere.
func (w *Want) differs(got result) string {
	if got.err != nil || w.Error != "" {
		if w.Error != got.code || w.Error == "" {
			return fmt.Sprintf("error: got %s want %s", orNone(got.errorText()), orNone(w.Error))
		}
		return ""
	}
	if w.Tasks != nil && !slices.Equal(w.Tasks, got.keys) {
		return fmt.Sprintf("tasks: got %q want %q", got.keys, w.Tasks)
	}
	if w.Selected != nil && *w.Selected != got.selected {
		return fmt.Sprintf("selected: got %d want %d", got.selected, *w.Selected)
	}
	if len(w.Scores) != len(got.scores) {
		return fmt.Sprintf("scores: got %d want %d: %s", len(got.scores), len(w.Scores), text(got.scores))
	}
	for i, want := range w.Scores {
		have := asMap(got.scores[i])
		for _, k := range sortedKeys(want) {
			if text(have[k]) != text(want[k]) {
				return fmt.Sprintf("scores[%d].%s: got %s want %s", i, k, text(have[k]), text(want[k]))
			}
		}
	}
	return ""
}

// want makes a golden of a result.
func (r result) want() Want {
	if r.err != nil {
		return Want{Error: r.code}
	}
	w := Want{Tasks: r.keys}
	for _, s := range r.scores {
		w.Scores = append(w.Scores, asMap(s))
	}
	if r.rollout {
		w.Selected = &r.selected
	}
	return w
}

// save writes the case back with its new golden.
func (c *Case) save() error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		return err
	}
	return renameio.WriteFile(c.file, b.Bytes(), 0o644)
}

func asMap(s abi.Score) map[string]any {
	var m map[string]any
	_ = json.Unmarshal([]byte(text(s)), &m) // text made it
	return m
}

// text is v as JSON: equal values, equal text.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v)
	}
	return string(b)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// dataFolders are the folders cases/data/NAME, which stand for what is granted as fs.NAME.
func dataFolders(dir string) (map[string]string, error) {
	root, err := filepath.Abs(filepath.Join(dir, "cases", "data"))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			out[e.Name()] = filepath.Join(root, e.Name())
		}
	}
	return out, nil
}
