package author

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/plugins"
)

// templates has one folder for each <lang>-<kind>, and <lang>-sdk for what all kinds of a language share.
// Files end in .tmpl, which is cut off; PLUGIN_NAME in them becomes the plugin's name. Nothing else has to
// be registered: a folder that is there is a template.
//
//go:embed all:templates
var templates embed.FS

const (
	suffix      = ".tmpl"
	placeholder = "PLUGIN_NAME"
)

// Langs are the languages of `plugin new`, also those whose templates are not there yet.
func Langs() []string { return []string{"go", "script", "c", "rust", "assemblyscript"} }

// Kinds are the kinds of plugins that `plugin new` makes.
func Kinds() []string { return []string{"scorer", "task", "rollout"} }

// NewSpec says what to make. Dir "" is a folder of the plugin's name.
type NewSpec struct{ Name, Lang, Kind, Dir string }

// Created is what New made.
type Created struct {
	Name  string   `json:"name"`
	Dir   string   `json:"dir"`
	Files []string `json:"files"` // relative to Dir; the SDK's are not listed
	Next  []string `json:"next"`  // commands
}

// New writes a plugin that builds, passes its test and can be run, into a folder that must be empty or
// missing.
//
// # Errors
//
// *RequestError for a name, language or kind that is not there, and for a folder with something in it.
func New(s NewSpec) (*Created, error) {
	if !regexp.MustCompile(`^[a-z][a-z0-9-]{1,62}$`).MatchString(s.Name) {
		return nil, &RequestError{fmt.Sprintf("plugin new: name %q: want a small letter, then small letters, digits and -, such as my-math", s.Name)}
	}
	if !slices.Contains(Langs(), s.Lang) {
		return nil, &RequestError{fmt.Sprintf("plugin new: --lang %s: unknown, there are: %s", s.Lang, strings.Join(Langs(), ", "))}
	}
	if !slices.Contains(Kinds(), s.Kind) {
		return nil, &RequestError{fmt.Sprintf("plugin new: --kind %s: unknown, there are: %s", s.Kind, strings.Join(Kinds(), ", "))}
	}
	there := available()
	if !slices.Contains(there, s.Lang+"-"+s.Kind) {
		return nil, &RequestError{fmt.Sprintf("plugin new: --lang %s --kind %s: not built yet\n  there are (language-kind): %s", s.Lang, s.Kind, strings.Join(there, ", "))}
	}
	if s.Dir == "" {
		s.Dir = s.Name
	}
	if entries, err := os.ReadDir(s.Dir); err == nil && len(entries) > 0 {
		return nil, &RequestError{fmt.Sprintf("plugin new: %s: the folder is not empty", s.Dir)}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("plugin new: %w", err)
	}
	files, err := s.copy(s.Lang + "-" + s.Kind)
	if err != nil {
		return nil, fmt.Errorf("plugin new: %w", err)
	}
	if err := s.copySDK(); err != nil {
		return nil, fmt.Errorf("plugin new: %w", err)
	}
	return &Created{Name: s.Name, Dir: s.Dir, Files: files, Next: []string{
		"wevalr plugin test " + s.Dir,
		"wevalr plugin build " + s.Dir,
		"wevalr run " + filepath.Join(s.Dir, "eval.toml"),
	}}, nil
}

// available lists the templates that are there.
func available() []string {
	entries, err := templates.ReadDir("templates")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "-sdk") {
			out = append(out, e.Name())
		}
	}
	return out
}

// copySDK writes what all kinds of a language share: the template's files, and for Go this repository's
// own SDK, as the module that the template's go.mod stands for.
func (s NewSpec) copySDK() error {
	if _, err := s.copy(s.Lang + "-sdk"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for from, to := range otherSDKs(s.Lang) {
		text, err := plugins.OtherSDKs.ReadFile(from)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(s.Dir, filepath.FromSlash(to)), text); err != nil {
			return err
		}
	}
	if s.Lang != "go" {
		return nil
	}
	return fs.WalkDir(plugins.GoSDK, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := plugins.GoSDK.ReadFile(name)
		if err != nil {
			return err
		}
		return write(filepath.Join(s.Dir, "wevalr", "plugins", filepath.FromSlash(name)), text)
	})
}

// otherSDKs says where the files of a language's SDK stand in a plugin.
func otherSDKs(lang string) map[string]string {
	switch lang {
	case "c":
		return map[string]string{"sdk/c/wevalr.h": "wevalr.h"}
	case "assemblyscript":
		return map[string]string{"sdk/assemblyscript/assembly/wevalr.ts": "assembly/wevalr.ts"}
	case "rust":
		return map[string]string{
			"sdk/rust/src/lib.rs": "src/wevalr/mod.rs", "sdk/rust/src/json.rs": "src/wevalr/json.rs", "sdk/rust/src/env.rs": "src/wevalr/env.rs",
		}
	}
	return nil
}

// copy writes one folder of the templates and lists its files.
func (s NewSpec) copy(folder string) ([]string, error) {
	tree, err := fs.Sub(templates, path.Join("templates", folder))
	if err != nil {
		return nil, err
	}
	var files []string
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		name = strings.TrimSuffix(name, suffix)
		files = append(files, name)
		return write(filepath.Join(s.Dir, filepath.FromSlash(name)), []byte(strings.ReplaceAll(string(text), placeholder, s.Name)))
	})
	return files, err
}

func write(to string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// Text is for a person.
func (c *Created) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %s\nnext:\n  %s\n", c.Dir, strings.Join(c.Files, ", "), strings.Join(c.Next, "\n  "))
	return err
}
