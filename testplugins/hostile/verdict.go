package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Outcome is what came of loading a module, or of one call of it.
type Outcome struct {
	Step string // of loading, where it was refused there
	Kind string // of the plugin's failure; "" = none
	Text string // the error's, or the answer's as JSON
	Took time.Duration
}

// maxText bounds what a module can make the host say: it has the last 64 KiB of the module's own output in it.
const maxText = 128 << 10

// Loading says what is wrong with the outcome of loading the module; nil = nothing.
func (m *Module) Loading(o Outcome) error {
	switch {
	case m.Loads && o.Kind != "":
		return fmt.Errorf("was not loaded: %s", o.Text)
	case !m.Loads && o.Kind == "":
		return fmt.Errorf("was loaded, want a refusal that says %q", m.Says)
	case m.Step != "" && o.Step != m.Step:
		return fmt.Errorf("was refused at step %q (%s), want %q", o.Step, o.Text, m.Step)
	case o.Took > m.Within:
		return fmt.Errorf("loading took %v, want %v at most", o.Took, m.Within)
	case m.Loads:
		return nil
	}
	return m.ended(o)
}

// Call says what is wrong with the outcome of a call, which must be as that of the first; nil = nothing.
func (m *Module) Call(o, first Outcome) error {
	switch {
	case o.Took > m.Within:
		return fmt.Errorf("a call took %v, want %v at most", o.Took, m.Within)
	case o.Text != first.Text:
		return fmt.Errorf("a call gave %q, the first %q", o.Text, first.Text)
	}
	return m.ended(o)
}

func (m *Module) ended(o Outcome) error {
	switch {
	case o.Kind != m.Kind:
		return fmt.Errorf("ended as %q (%s), want %q", o.Kind, o.Text, m.Kind)
	case !strings.Contains(o.Text, m.Says):
		return fmt.Errorf("gave %q, want %q in it", o.Text, m.Says)
	case strings.ContainsAny(o.Text, "\x1b\x07\u009b\u202e"):
		return fmt.Errorf("gave %q, which a terminal obeys", o.Text)
	case len(o.Text) > maxText:
		return fmt.Errorf("gave %d bytes of text, want %d at most", len(o.Text), maxText)
	}
	return nil
}

// Folder makes, below dir, the folder that is granted to modules with Folder, and gives its path.
func Folder(dir string) (string, error) {
	outside, inside := filepath.Join(dir, "outside"), filepath.Join(dir, "dataset")
	for _, d := range []string{outside, inside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return "", err
		}
	}
	secret := filepath.Join(outside, "secret")
	for path, text := range map[string]string{secret: "secret", filepath.Join(inside, "in"): "in"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	for link, target := range map[string]string{"absolute": secret, "relative": "../outside/secret", "folder": outside} {
		if err := os.Symlink(target, filepath.Join(inside, link)); err != nil {
			return "", err
		}
	}
	return inside, nil
}
